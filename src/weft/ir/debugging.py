"""What debugging adds to tile IR: a condition that is looked at while the kernel runs, with the values behind it.

The operation is Weft's own. It is made after the stage that `.asm["ttir"]` shows, so that text stays Triton's.
"""

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, var_operand_def

from .effects import WriteOp


@irdl_op_definition
class CheckOp(WriteOp):
    """Ends the launch with an error unless every element is true; the error tells the first place and the values there:

    "weft.check"(%ok, %address) <{what = "load", message = "", bytes = 4 : i32, ...}> : (tensor<8xi1>, tensor<8xi64>)

    At most two values, integers of 64 bits, in the condition's shape. For a plain condition see `tt.assert`. What may
    be checked, and what the values are then:

    assert        none, or both sides of the comparison that does not hold, which `relation` names (`slt`, `eq`, ...)
    value         the value that is not as `message` says
    stored        the bits that an element, of `type`, should have in memory, and those that it has
    found         what a doubtful operation has to tell, and the number of that among `sources` (see `findings`)
    load, store, atomic
                  the address that lies outside of the arrays in `arrays` (numbers of entries in the function's
                  attribute `weft.checked`); `bytes` is the size of an element, `masked` says whether there was a mask
    """

    name = "weft.check"
    condition = operand_def()
    values = var_operand_def()
    what = prop_def(StringAttr)
    message = prop_def(StringAttr)
    relation = opt_prop_def(StringAttr)
    bytes = opt_prop_def()
    arrays = opt_prop_def()
    masked = opt_prop_def()
    sources = opt_prop_def()
    type = opt_prop_def(StringAttr)
