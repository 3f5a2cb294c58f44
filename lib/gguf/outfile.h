/* SPDX-License-Identifier: MIT */
/* outfile.h - a file of any kind that appears complete or not at all
 *
 * Written as the library writes models: the bytes go to a file without a name
 * (where the system cannot do that, to a temporary beside the target), which
 * is synced and takes its name when it is complete. A file of that name stays
 * until then; a failure, or a process that dies, leaves it as it was.
 *
 *     gguf_outfile_open(&o, "report.json", 0, NULL, err);
 *     gguf_outfile_write(o, text, size, err);          as often as it takes
 *     gguf_outfile_commit(o, err);
 *     gguf_outfile_close(o);                         in every case
 *
 * One thread at a time.
 */
#ifndef GGUF_OUTFILE_H
#define GGUF_OUTFILE_H

#include <gguf/memory.h>
#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_outfile;

/* Begin the file that will be path. force: it may replace a regular file; of a
 * symbolic link, the link itself is replaced, not its target. GGUF_E_EXIST,
 * GGUF_E_INVALID (path is not a regular file), GGUF_E_IO, GGUF_E_NOMEM.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_outfile_open(struct gguf_outfile **out, const char *path, int force,
                  const struct gguf_allocator *allocator,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Append. GGUF_E_IO, GGUF_E_NOSPACE. Since: 0.1 */
GGUF_API enum gguf_status
gguf_outfile_write(struct gguf_outfile *o, const void *data, uint64_t size,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Sync, and give the file its name. It can only be destroyed afterwards.
 * GGUF_E_EXIST if path has come to exist and force is not set; GGUF_E_IO,
 * GGUF_E_NOSPACE; GGUF_E_INVALID if it was committed before. Since: 0.1 */
GGUF_API enum gguf_status
gguf_outfile_commit(struct gguf_outfile *o,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Without a commit nothing stays on disk. NULL is fine. Since: 0.1 */
GGUF_API void gguf_outfile_close(struct gguf_outfile *o);

#ifdef __cplusplus
}
#endif
#endif
