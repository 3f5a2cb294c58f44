/* SPDX-License-Identifier: MIT */
/* remote.h - models on servers: https://HOST/..., hf://OWNER/REPO/FILE
 *
 * An opener (gguf/reader.h) that reads files by range requests. A program
 * passes it to the functions that open paths:
 *
 *     remote_args(argv + 1, n);
 *     params.opener = remote_opener();
 */
#ifndef TOOLS_REMOTE_H
#define TOOLS_REMOTE_H

#include "tools/common/nocase.h"

#include <gguf/reader.h>

#include <stdbool.h>

/* Does path begin with https://, http:// or hf://? */
static inline bool remote_is_url(const char *path)
{
    return nocase_begins(path, "https://") || nocase_begins(path, "http://") ||
           nocase_begins(path, "hf://");
}

/* Rewrite operands that are addresses so that they end with the name of the
 * file, as names of shards must: hf://O/R/F@REV becomes hf://O/R@REV/F, /blob/
 * in an address of the Hub becomes /resolve/, and ?download=true is dropped.
 *
 * User, password and query are removed, so that no message or report shows
 * them. remote_opener() adds them again to requests for files below the same
 * folder.
 */
void remote_args(char **arg, int n);

/* Rewrite an operand that is the address of a folder in the same way:
 * https://HUB/O/R/tree/REV becomes hf://O/R@REV. */
void remote_folder_arg(char **arg);

/* The opener. It takes addresses, as remote_is_url() recognises them. */
const struct gguf_opener *remote_opener(void);

#endif
