/* SPDX-License-Identifier: MIT */
/* wrap.h - lines on standard output that fit the terminal */
#ifndef TOOLS_WRAP_H
#define TOOLS_WRAP_H

#include "tools/common/msg.h"

/* Print to standard output like printf().
 *
 * On a terminal each line is held until it is complete. A line that is too
 * long loses the blanks that align it with others and is wrapped at blanks and
 * after commas. If it begins with a label, as "model   name: llama" does, the
 * following lines are indented by the label. Elsewhere nothing is changed.
 */
void wrap_printf(const char *fmt, ...) MSG_PRINTF(1, 2);

#endif
