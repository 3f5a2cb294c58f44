/* SPDX-License-Identifier: MIT */
/* remote.h - models on servers: https://HOST/..., hf://OWNER/REPO/FILE
 *
 * An opener (gguf/reader.h) that asks servers for ranges of bytes. Programs
 * that link it give it to what opens paths:
 *
 *     remote_args(argv + 1, n);
 *     params.opener = remote_opener();
 */
#ifndef TOOLS_REMOTE_H
#define TOOLS_REMOTE_H

#include <gguf/reader.h>

#include <stdbool.h>
#include <strings.h>

/* Does path begin with https://, http:// or hf://? */
static inline bool remote_is_url(const char *path)
{
    return !strncasecmp(path, "https://", 8) ||
           !strncasecmp(path, "http://", 7) || !strncasecmp(path, "hf://", 5);
}

/* Put those of n operands that are on servers into a form whose end is the
 * name of the file, as shards need: hf://O/R/F@REV becomes hf://O/R@REV/F, and
 * of an address of the Hub's /blob/ becomes /resolve/, and ?download=true goes.
 * User, password and query are taken out, so that no message or report has
 * them; remote_opener adds them to what it asks for below the same folder. */
void remote_args(char **arg, int n);

/* The same of one operand that is a folder: https://HUB/O/R/tree/REV becomes
 * hf://O/R@REV. */
void remote_folder_arg(char **arg);

/* Takes what remote_is_url. */
const struct gguf_opener *remote_opener(void);

#endif
