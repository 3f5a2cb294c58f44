/* SPDX-License-Identifier: MIT */
/* remote_url.h - what hf:// means, and which token goes where */
#ifndef TOOLS_REMOTE_URL_H
#define TOOLS_REMOTE_URL_H

#include <gguf/status.h>

/* The address of path, which remote_is_url; to be freed. NULL: err says why. */
char *remote_url(const char *path, struct gguf_error *err);

/* Where the Hub is: HF_ENDPOINT or https://huggingface.co, without a slash at
 * its end. */
const char *remote_hub(void);

/* path in another form that says the same, to be freed, or NULL: as it is. */
char *remote_normalise(const char *path);

/* path, the address of a folder, as one that a slash and a name can follow: to
 * be freed, or NULL: as it is. Pages of the Hub become hf://OWNER/REPO@REV. */
char *remote_normalise_folder(const char *path);

/* The user's token for the Hub, to be freed. *out NULL: there is none.
 * GGUF_E_INVALID: it cannot be one. */
enum gguf_status remote_token(char **out, struct gguf_error *err);

#endif
