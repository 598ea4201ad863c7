"""What kernels in tile IR begin with that walk over tiles of 64 by 64 of %x and %y: addresses %xp and %yp."""

TILES = """\
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %c64 = arith.constant dense<64> : tensor<64x1xi32>
    %down = arith.muli %rows, %c64 : tensor<64x1xi32>
    %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %a0 = tt.broadcast %down : tensor<64x1xi32> -> tensor<64x64xi32>
    %a1 = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %at = arith.addi %a0, %a1 : tensor<64x64xi32>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %ys = tt.splat %y : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %yp = tt.addptr %ys, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
"""
