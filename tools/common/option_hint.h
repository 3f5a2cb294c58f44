/* SPDX-License-Identifier: MIT */
/* option_hint.h - which option helps */
#ifndef TOOLS_COMMON_OPTION_HINT_H
#define TOOLS_COMMON_OPTION_HINT_H

#include <gguf/status.h>

#include <stdbool.h>
#include <stddef.h>

/* " (--limit dims=5 takes it)" where err is about a limit that --limit raises
 * so far, else "". */
const char *hint_limit(const struct gguf_error *err, char *out, size_t size);

/* The address of the repository OWNER/NAME on Hugging Face, if that is what
 * path looks like and nothing is there; else "". */
const char *hint_repository(const char *path, char *out, size_t size);
/* Name the command that makes a GGUF file of the adapter, if path is the folder
 * of one; else "". */
const char *hint_adapter(const char *path);

/* After a run that made the file out of in was stopped or broke: what is left
 * of it, or that --resume would have left something. with: the run had that
 * option. out may be NULL. */
void hint_resume(const char *in, const char *out, enum gguf_status st,
                 bool with);

#endif
