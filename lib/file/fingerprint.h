/* SPDX-License-Identifier: MIT */
/* fingerprint.h - is a file that is read the one that was read before? */
#ifndef GG_FILE_FINGERPRINT_H
#define GG_FILE_FINGERPRINT_H

#include "base/mapfile.h"

#include <xxhash.h>

/* Add what tells m from other files to a digest of XXH3, 128 bits: size, time,
 * inode, the first header bytes, and samples of the others; or of one whose
 * bytes come from a function that says which version they are, that. Not the
 * device: a disk may have another number when the machine is on again, nor the
 * time of the inode, which a new name changes. GGUF_E_IO, GGUF_E_TRUNCATED, and
 * what the function returns. */
enum gguf_status gg_fingerprint_add_file(XXH3_state_t *s,
                                         const struct gg_mapfile *m,
                                         uint64_t header,
                                         struct gguf_error *err);

/* The same of a number. */
void gg_fingerprint_add_number(XXH3_state_t *s, uint64_t v);

#endif
