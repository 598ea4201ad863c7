// DPAS as plain OpenCL C: the functions that a module imports for it with the option `imported_products`, for devices that
// do not have them. A subgroup of 16, or of 8 where A is given as int; lane n has column n of B and of the sums.
//
// A row of A is in all lanes together, a short or an int for each: columns of 16 bits or of 8. tf32 has two rows in
// a register, the first in lanes 0 to 7. B has 8 words of 32 bits, one element of K below the other in a word.

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

double half_of(int bits) { ushort x = bits; return vload_half(0, (half *)&x); }
double bfloat_of(int bits) { return as_float(bits << 16); }
double tf32_of(int bits) { return as_float(bits & ~0x1fff); }

#define FLOATS(NAME, VALUE, A, EACH)                                                 \
    float NAME(A a, const int *b, float c)                                           \
    {                                                                                \
        double sum = c;                                                              \
        for (int k = 0; k < 16; k++) {                                               \
            int left = sub_group_broadcast((int)a, k / EACH) >> 16 * (k % EACH);     \
            sum += VALUE(left & 0xffff) * VALUE(b[k / 2] >> 16 * (k % 2) & 0xffff);  \
        }                                                                            \
        return sum;                                                                  \
    }
FLOATS(row_of_f16, half_of, short, 1)
FLOATS(row_of_bf16, bfloat_of, short, 1)
FLOATS(row_of_f16_in_8, half_of, int, 2)
FLOATS(row_of_bf16_in_8, bfloat_of, int, 2)

#define BYTES(NAME, LEFT, RIGHT, A, EACH)                                            \
    int NAME(A a, const int *b, int c)                                               \
    {                                                                                \
        for (int k = 0; k < 32; k++) {                                               \
            int left = sub_group_broadcast((int)a, k / EACH) >> 8 * (k % EACH);      \
            c += (LEFT)left * (RIGHT)(b[k / 4] >> 8 * (k % 4));                      \
        }                                                                            \
        return c;                                                                    \
    }
#define ALL_BYTES(NAME, LEFT, RIGHT)                                                 \
    BYTES(NAME, LEFT, RIGHT, short, 2)                                               \
    BYTES(NAME##_in_8, LEFT, RIGHT, int, 4)
ALL_BYTES(row_of_s8_s8, char, char)
ALL_BYTES(row_of_s8_u8, char, uchar)
ALL_BYTES(row_of_u8_s8, uchar, char)
ALL_BYTES(row_of_u8_u8, uchar, uchar)

float row_of_tf32(float a, const float *b, float c, int first)
{
    double sum = c;
    for (int k = 0; k < 8; k++)
        sum += tf32_of(as_int(sub_group_broadcast(a, first + k))) * tf32_of(as_int(b[k]));
    return sum;
}

// What the functions are called with, of 1, 2, 4 and 8 rows.
#define ROWS(FUNCTION, ROW, A, B, C, COUNT, R)                                       \
    C##R __attribute__((overloadable)) FUNCTION(A##R a, B##8 b, C##R c)              \
    {                                                                                \
        C##R d;                                                                      \
        for (int m = 0; m < COUNT; m++)                                              \
            ((C *)&d)[m] = ROW(((A *)&a)[m], (int *)&b, ((C *)&c)[m]);               \
        return d;                                                                    \
    }
#define ALL(FUNCTION, ROW, A, B, C)                                                  \
    ROWS(FUNCTION, ROW, A, B, C, 1, )                                                \
    ROWS(FUNCTION, ROW, A, B, C, 2, 2)                                               \
    ROWS(FUNCTION, ROW, A, B, C, 4, 4)                                               \
    ROWS(FUNCTION, ROW, A, B, C, 8, 8)
ALL(intel_sub_group_f16_f16_matrix_mad_k16, row_of_f16, short, int, float)
ALL(intel_sub_group_bf16_bf16_matrix_mad_k16, row_of_bf16, short, int, float)
ALL(intel_sub_group_i8_i8_matrix_mad_k32, row_of_s8_s8, short, int, int)
ALL(intel_sub_group_i8_u8_matrix_mad_k32, row_of_s8_u8, short, uint, int)
ALL(intel_sub_group_u8_i8_matrix_mad_k32, row_of_u8_s8, ushort, int, int)
ALL(intel_sub_group_u8_u8_matrix_mad_k32, row_of_u8_u8, ushort, uint, int)
ALL(intel_sub_group_f16_f16_matrix_mad_k16, row_of_f16_in_8, int, int, float)
ALL(intel_sub_group_bf16_bf16_matrix_mad_k16, row_of_bf16_in_8, int, int, float)
ALL(intel_sub_group_i8_i8_matrix_mad_k32, row_of_s8_s8_in_8, int, int, int)
ALL(intel_sub_group_i8_u8_matrix_mad_k32, row_of_s8_u8_in_8, int, uint, int)
ALL(intel_sub_group_u8_i8_matrix_mad_k32, row_of_u8_s8_in_8, uint, int, int)
ALL(intel_sub_group_u8_u8_matrix_mad_k32, row_of_u8_u8_in_8, uint, uint, int)

#define TF32(COUNT, A, C)                                                            \
    C __builtin_IB_sub_group16_fdpas_f_f_tf32_tf32_8_##COUNT(C c, A a, float8 b)     \
    {                                                                                \
        C d;                                                                         \
        for (int m = 0; m < COUNT; m++)                                              \
            ((float *)&d)[m] = row_of_tf32(((float *)&a)[m / 2], (float *)&b, ((float *)&c)[m], m % 2 * 8); \
        return d;                                                                    \
    }
TF32(1, float, float)
TF32(2, float, float2)
TF32(4, float2, float4)
TF32(8, float4, float8)
