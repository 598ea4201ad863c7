/* Run a kernel on AArch64: `driver kernel.so request answer`.

   The request, in 64-bit words: the size of the state, threads, bytes of scratch memory, the grid (3), the number of arrays, of slots and of
   addresses in arrays; for each array its size in bytes and the alignment of its address; for each slot whether it is
   an address (1 + the number of an array) and its value or offset; for each address in an array the array, the offset
   in it, and array and offset that it points to; then the contents of the arrays. The answer: the error of the state and
   the program it is of, and the contents of the arrays; then what the kernel printed, in records of three words (the
   number of the print, the program, the size) and so many bytes.

   An array ends where memory ends (as closely as its alignment lets it), so that an access beyond it is a fault. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct {
    int64_t next, total, chunk;
    int32_t nx, ny, nz, threads;
    int64_t error, error_pid;
    void *printer;
    void **table, *whole;
} State;

typedef void Kernel(void *args, State *state, void *scratch);

static Kernel *kernel;
static State state;
static uint64_t *args, scratch_bytes;
static FILE *printed;
static char *text;
static size_t text_size;

static void fail(const char *what) {
    fprintf(stderr, "driver: %s\n", what);
    exit(3);
}

static int32_t poll(State *s) { return s->error < 0; }

static void print(State *unused, int64_t index, int64_t program, const void *data, int64_t size) {
    (void)unused;
    int64_t head[3] = {index, program, size};
    fwrite(head, 8, 3, printed);
    if (size) fwrite(data, 1, size, printed);
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *run(void *unused) {
    kernel(args, &state, scratch_bytes ? aligned_alloc(64, (scratch_bytes + 63) / 64 * 64) : NULL);
    return unused;
}

static char *ending_at_a_page(uint64_t size, uint64_t align) {
    uint64_t page = 4096, room = (size + align + page - 1) / page * page;
    char *memory = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + room, page, PROT_NONE)) fail("no memory");
    return memory + (room - size) / align * align;
}

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: driver kernel.so name request answer");
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) fail(dlerror());
    kernel = (Kernel *)dlsym(library, argv[2]);
    if (!kernel) fail(dlerror());
    FILE *in = fopen(argv[3], "rb");
    uint64_t head[9];
    if (!in || fread(head, 8, 9, in) != 9) fail("no request");
    if (head[0] != sizeof(State)) fail("the state of a launch is another one");
    uint64_t threads = head[1], arrays = head[6], slots = head[7], addresses = head[8];
    uint64_t *shapes = malloc(arrays * 16 + 1), *places = malloc(slots * 16 + 1);
    uint64_t *links = malloc(addresses * 32 + 1);
    if (fread(shapes, 16, arrays, in) != arrays || fread(places, 16, slots, in) != slots) fail("a short request");
    if (fread(links, 32, addresses, in) != addresses) fail("a short request");
    char **memory = malloc(arrays * sizeof(char *) + 1);
    for (uint64_t i = 0; i < arrays; i++) {
        memory[i] = ending_at_a_page(shapes[2 * i], shapes[2 * i + 1]);
        if (fread(memory[i], 1, shapes[2 * i], in) != shapes[2 * i]) fail("a short array");
    }
    for (uint64_t *l = links; l < links + 4 * addresses; l += 4)
        *(uint64_t *)(memory[l[0]] + l[1]) = (uint64_t)memory[l[2]] + l[3];
    args = calloc(slots + 5, 8);
    for (uint64_t i = 0; i < slots; i++)
        args[i] = places[2 * i + 1] + (places[2 * i] ? (uint64_t)memory[places[2 * i] - 1] : 0);
    printed = open_memstream(&text, &text_size);
    void *table[] = {(void *)poll, (void *)print, (void *)now};
    scratch_bytes = head[2];
    state.total = (int64_t)(head[3] * head[4] * head[5]);
    state.chunk = 1;
    state.nx = head[3], state.ny = head[4], state.nz = head[5];
    state.table = table;
    pthread_t *others = malloc(threads * sizeof(pthread_t));
    for (uint64_t i = 1; i < threads; i++)
        if (pthread_create(&others[i], NULL, run, NULL)) fail("no thread");
    run(NULL);
    for (uint64_t i = 1; i < threads; i++) pthread_join(others[i], NULL);
    fclose(printed);
    FILE *out = fopen(argv[4], "wb");
    if (!out) fail("no place for the answer");
    fwrite(&state.error, 8, 2, out);
    fwrite(args + slots, 8, 5, out);
    for (uint64_t i = 0; i < arrays; i++) fwrite(memory[i], 1, shapes[2 * i], out);
    fwrite(text, 1, text_size, out);
    return fclose(out) ? 4 : 0;
}
