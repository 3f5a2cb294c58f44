/* SPDX-License-Identifier: MIT */
/* fingerprint.h - digests that tell whether a file is still the same one */
#ifndef GG_FILE_FINGERPRINT_H
#define GG_FILE_FINGERPRINT_H

#include "base/mapfile.h"

#include <xxhash.h>

/* Add the identity of a file to an XXH3 digest of 128 bits.
 *
 * s        The digest.
 * m        The file.
 * header   Number of bytes at its beginning that are added in full.
 *
 * Size, modification time, inode, the header and samples of the other bytes are
 * added. For a file with a function that knows a version (gguf/reader.h), the
 * version is added instead of the samples. The device is left out, because a
 * disk may have another number after a restart, and so is the time of the
 * inode, which a renaming changes.
 *
 * GGUF_E_IO: the file cannot be read. GGUF_E_TRUNCATED: it has become shorter.
 * Other statuses are those of the function. */
enum gguf_status gg_fingerprint_add_file(XXH3_state_t *s,
                                         const struct gg_mapfile *m,
                                         uint64_t header,
                                         struct gguf_error *err);

/* Add a number to a digest. */
void gg_fingerprint_add_number(XXH3_state_t *s, uint64_t v);

#endif
