/* SPDX-License-Identifier: MIT */
/* outfile.h - write a file of any kind that appears complete or not at all
 *
 * A struct gguf_outfile writes a file, such as a report, the way the library
 * writes models. The bytes go to a file without a name, or to a temporary
 * beside the target where the system cannot do that. It is synced and takes
 * its name when it is complete. Until then an old file of that name stays as
 * it was, even if the process dies.
 *
 *   1. gguf_outfile_open() begins the file.
 *   2. gguf_outfile_write() appends to it.
 *   3. gguf_outfile_commit() gives it its name.
 *   4. gguf_outfile_close() frees it, after a failure, too.
 *
 *     if (gguf_outfile_open(&o, "report.json", false, NULL, &err) != GGUF_OK)
 *         return fail(err.message);
 *     st = gguf_outfile_write(o, text, size, &err);
 *     if (st == GGUF_OK)
 *         st = gguf_outfile_commit(o, &err);
 *     gguf_outfile_close(o);
 *
 * One thread at a time may use an outfile. Messages do not name the output:
 * the caller has its path.
 */
#ifndef GGUF_OUTFILE_H
#define GGUF_OUTFILE_H

#include <gguf/memory.h>
#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_outfile;

/* Begin a file.
 *
 * out         Receives the outfile. NULL after a failure.
 * path        Path that the file gets at the commit.
 * force       Replace an existing regular file. A symbolic link is replaced
 *             itself, not its target.
 * allocator   Allocator of the outfile. It must outlive it. NULL: malloc.
 *
 * Close *out with gguf_outfile_close().
 *
 * GGUF_OK          The file is begun.
 * GGUF_E_EXIST     path exists and force is false.
 * GGUF_E_INVALID   path is not a regular file.
 * GGUF_E_IO        The file cannot be created.
 * GGUF_E_NOMEM     Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_outfile_open(struct gguf_outfile **out, const char *path, bool force,
                  const struct gguf_allocator *allocator,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Append bytes to a file.
 *
 * o      The outfile.
 * data   The bytes.
 * size   Number of bytes.
 *
 * GGUF_OK          The bytes are written or buffered.
 * GGUF_E_INVALID   The file has been committed.
 * GGUF_E_IO        The file cannot be written.
 * GGUF_E_NOSPACE   The disk is full.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_outfile_write(struct gguf_outfile *o, const void *data, uint64_t size,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Finish a file: wait until it is on the disk, and give it its name.
 *
 * o   The outfile. Afterwards it can only be closed.
 *
 * GGUF_OK          The file is at its path.
 * GGUF_E_INVALID   The file has been committed before.
 * GGUF_E_EXIST     The path exists by now, and force was false.
 * GGUF_E_IO        The file cannot be written or renamed. If only the folder
 *                  cannot be synced, the file has its name already; the
 *                  message says so.
 * GGUF_E_NOSPACE   The disk is full.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_outfile_commit(struct gguf_outfile *o,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Free an outfile. A file that was not committed is removed. NULL is allowed.
 * Since: 0.1 */
GGUF_API void gguf_outfile_close(struct gguf_outfile *o);

#ifdef __cplusplus
}
#endif
#endif
