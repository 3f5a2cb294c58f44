/* SPDX-License-Identifier: MIT */
/* option_hint.h - hints at the option that helps after an error */
#ifndef TOOLS_COMMON_OPTION_HINT_H
#define TOOLS_COMMON_OPTION_HINT_H

#include <gguf/status.h>

#include <stdbool.h>
#include <stddef.h>

/* Write " (--limit dims=5 takes it)" if err is about a limit that --limit can
 * raise far enough, otherwise "". Returns out. */
const char *hint_limit(const struct gguf_error *err, char *out, size_t size);

/* Write a hint with the Hub address of the repository OWNER/NAME if path looks
 * like one and does not exist, otherwise "". Returns out. */
const char *hint_repository(const char *path, char *out, size_t size);
/* Return a hint at the command that converts an adapter if path is the folder
 * of one, otherwise "". */
const char *hint_adapter(const char *path);

/* After a run failed or was stopped, say whether its work is kept for
 * --resume, or that --resume would have kept it.
 *
 * in     The input.
 * out    The output; NULL: say nothing.
 * st     Status of the run.
 * with   The run had --resume.
 */
void hint_resume(const char *in, const char *out, enum gguf_status st,
                 bool with);

#endif
