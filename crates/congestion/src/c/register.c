/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* register.c: every controller that exists, for native code. */
#include "reno.h"
#include "cubic.h"
#include "lia.h"
#include "olia.h"
#include "balia.h"
#include "gsam.h"
#include "subflow_switch.h"
#include "lisa.h"
#include "hystartpp.h"
#include "css.h"
#include "adaptive_start.h"
#include "nice.h"
#include "lp.h"
#include "ledbatpp.h"
#include "imtcp.h"
#include "imtcp_bg.h"
#include "bbr3.h"
#include "gleaner.h"

#define CC reno
#include "flow_export.h"
#define CC cubic
#include "flow_export.h"
#define CC lia
#include "flow_export.h"
#define CC olia
#include "flow_export.h"
#define CC balia
#include "flow_export.h"
#define CC gsam
#include "flow_export.h"
#define CC subflow_switch
#include "flow_export.h"
#define CC lisa
#include "flow_export.h"
#define CC hystartpp
#include "flow_export.h"
#define CC css
#include "flow_export.h"
#define CC adaptive_start
#include "flow_export.h"
#define CC nice
#include "flow_export.h"
#define CC lp
#include "flow_export.h"
#define CC ledbatpp
#include "flow_export.h"
#define CC imtcp
#include "flow_export.h"
#define CC imtcp_bg
#include "flow_export.h"
#define CC bbr3
#include "flow_export.h"
#define CC gleaner
#include "flow_export.h"

/* headers of PATHCAST_CONTROLLERS at build time */
#ifdef FLOW_OWN
#include "flow_own.h"
#else
#define FLOW_OWN_ROWS
#endif

/* what the other side of the language border must agree with */
const u32 flow_sizes[4] = { sizeof(struct flow), sizeof(struct flow_ack), sizeof(struct flow_param), sizeof(struct flow_controller) };
const struct flow_controller *const flow_register[] = {
	&flow_export_reno,
	&flow_export_cubic,
	&flow_export_lia,
	&flow_export_olia,
	&flow_export_balia,
	&flow_export_gsam,
	&flow_export_subflow_switch,
	&flow_export_lisa,
	&flow_export_hystartpp,
	&flow_export_css,
	&flow_export_adaptive_start,
	&flow_export_nice,
	&flow_export_lp,
	&flow_export_ledbatpp,
	&flow_export_imtcp,
	&flow_export_imtcp_bg,
	&flow_export_bbr3,
	&flow_export_gleaner,
	FLOW_OWN_ROWS
};
const u32 flow_register_len = sizeof(flow_register) / sizeof(flow_register[0]);
