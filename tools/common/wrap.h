/* SPDX-License-Identifier: MIT */
/* wrap.h - lines on standard output that fit the terminal */
#ifndef TOOLS_WRAP_H
#define TOOLS_WRAP_H

#include "tools/common/msg.h"

/* printf. Where standard output is a terminal, lines are held until they end;
 * one that is longer than the terminal is wide loses the blanks that align it
 * with others, and is broken at blanks and after commas. What follows stands
 * below what follows the label, if the line has one as "model   name: llama"
 * does. Elsewhere nothing is changed. */
void wrap_printf(const char *fmt, ...) MSG_PRINTF(1, 2);

#endif
