"""One oracle for each controller: the formulas of its paper in floats, independent of the C headers."""

from pathcast.control.oracle.adaptive_start import AdaptiveStart
from pathcast.control.oracle.balia import Balia
from pathcast.control.oracle.css import Css
from pathcast.control.oracle.cubic import Cubic
from pathcast.control.oracle.gsam import Gsam
from pathcast.control.oracle.hystartpp import HyStartPP
from pathcast.control.oracle.imtcp import Imtcp
from pathcast.control.oracle.imtcp_bg import ImtcpBg
from pathcast.control.oracle.ledbatpp import LedbatPP
from pathcast.control.oracle.lia import Lia
from pathcast.control.oracle.lisa import Lisa
from pathcast.control.oracle.lp import Lp
from pathcast.control.oracle.nice import Nice
from pathcast.control.oracle.olia import Olia
from pathcast.control.oracle.reno import Reno
from pathcast.control.oracle.subflow_switch import SubflowSwitch
from pathcast.control.oracle.tcp import Control

ORACLES: dict[str, type[Control]] = {
    "reno": Reno,
    "cubic": Cubic,
    "lia": Lia,
    "olia": Olia,
    "balia": Balia,
    "gsam": Gsam,
    "subflow_switch": SubflowSwitch,
    "lisa": Lisa,
    "css": Css,
    "adaptive_start": AdaptiveStart,
    "hystartpp": HyStartPP,
    "nice": Nice,
    "lp": Lp,
    "ledbatpp": LedbatPP,
    "imtcp": Imtcp,
    "imtcp_bg": ImtcpBg,
}
