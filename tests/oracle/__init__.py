"""One oracle for each controller: the formulas of its paper in floats, independent of the C headers."""

from oracle.adaptive_start import AdaptiveStart
from oracle.balia import Balia
from oracle.bbr3 import Bbr3
from oracle.css import Css
from oracle.cubic import Cubic
from oracle.gleaner import Gleaner
from oracle.gsam import Gsam
from oracle.hystartpp import HyStartPP
from oracle.imtcp import Imtcp
from oracle.imtcp_bg import ImtcpBg
from oracle.ledbatpp import LedbatPP
from oracle.lia import Lia
from oracle.lisa import Lisa
from oracle.lp import Lp
from oracle.nice import Nice
from oracle.olia import Olia
from oracle.reno import Reno
from oracle.subflow_switch import SubflowSwitch
from oracle.tcp import Control

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
    "bbr3": Bbr3,
    "gleaner": Gleaner,
}
