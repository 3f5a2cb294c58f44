/* SPDX-License-Identifier: MIT */
/* verify.h - check that a model is complete and consistent
 *
 * gguf_file_check() (check.h) looks at a file as a container. The functions
 * here also look at the model in it, and at all shards of a set together:
 *
 *   vocabulary         Each token has a score and a type; ids are in range;
 *                      byte tokens and merges are well formed; no token
 *                      occurs twice.
 *   hyperparameters    All that the architecture needs are present, possible
 *                      and consistent.
 *   tensors            All that the architecture needs are present, with the
 *                      shapes that follow from hyperparameters and vocabulary,
 *                      and no others.
 *
 * Hyperparameters and tensors are checked for every architecture that the
 * library knows, including some that it cannot evaluate. For other
 * architectures a note says that they are not checked. A model without errors
 * whose data types the library knows can be loaded; a model with errors cannot
 * work.
 *
 *     static bool show(void *user, const struct gguf_finding *f)
 *     {
 *         puts(f->message);
 *         return false;
 *     }
 *     ...
 *     struct gguf_finding_callback report = { show, NULL };
 *     if (gguf_path_verify("model.gguf", NULL, NULL, report, &err) != GGUF_OK)
 *         return fail(err.message);
 */
#ifndef GGUF_VERIFY_H
#define GGUF_VERIFY_H

#include <gguf/check.h>
#include <gguf/meta.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Check a file or set, and the model in it.
 *
 * file     An open file.
 * params   How to check. NULL: the defaults.
 * report   Receives the findings. fn is required.
 *
 * Findings come in a fixed order: those of gguf_file_check() for each shard,
 * then vocabulary, hyperparameters, tensors, and tensor data with
 * params.payload. Without payload, no tensor data is read; a large vocabulary
 * takes tens of milliseconds and about ten megabytes.
 *
 * If file is one shard that was opened by itself, its tensors are not compared
 * with the hyperparameters. If that shard was opened by path, the whole set is
 * opened, too; a failure to do so is the finding "broken-set".
 *
 * GGUF_OK              The check is complete, with or without findings.
 * GGUF_E_INVALID       report.fn is NULL, or payload and quick are both set.
 * GGUF_E_UNSUPPORTED   payload is set and the file is read through a reader.
 * GGUF_E_CANCELLED     A callback returned true.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any, with a pool of its own. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_verify(const struct gguf_file *file,
                 const struct gguf_check_params *params,
                 struct gguf_finding_callback report,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Check a file as it would be with other metadata. For editors, before they
 * write.
 *
 * file     An open file.
 * meta     All pairs that the file, or the first shard of a set, would have.
 * params   How to check. payload must not be set. NULL: the defaults.
 * report   Receives the findings. fn is required.
 *
 * Nothing is written. Offsets of findings count in the file that would be
 * written; their member file is the present one. Padding between tensors is
 * not checked.
 *
 * GGUF_OK            The check is complete, with or without findings.
 * GGUF_E_INVALID     report.fn is NULL, or payload is set.
 * GGUF_E_FORMAT      general.alignment of meta is not a u32, or not a power of
 *                    two of at least 8.
 * GGUF_E_LIMIT       general.alignment of meta is too large.
 * GGUF_E_CANCELLED   A callback returned true.
 * GGUF_E_NOMEM       Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_verify_meta(const struct gguf_file *file,
                      const struct gguf_meta *meta,
                      const struct gguf_check_params *params,
                      struct gguf_finding_callback report,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Open a file or set and check it as gguf_file_verify() does.
 *
 * path          Path as for gguf_file_open().
 * file_params   How to open. NULL: the defaults.
 * params        How to check. NULL: the defaults.
 * report        Receives the findings. fn is required.
 *
 * If the contents prevent opening, that is a finding, whose member file is
 * NULL. Its code is "malformed", "version", "truncated", "overflow",
 * "row-length", "limit", "duplicate" or "broken-set". Missing shards are a
 * finding, too.
 *
 * GGUF_OK              The check is complete, with or without findings.
 * GGUF_E_INVALID       path is not a regular file, report.fn is NULL, or
 *                      payload and quick are both set.
 * GGUF_E_IO            The file cannot be opened or mapped.
 * GGUF_E_NOTFOUND      No file and no set of this path exists.
 * GGUF_E_UNSUPPORTED   payload is set and the file is read through a reader.
 * GGUF_E_CANCELLED     A callback returned true.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any, with a pool of its own. Since: 0.1 */
GGUF_API enum gguf_status
gguf_path_verify(const char *path, const struct gguf_file_params *file_params,
                 const struct gguf_check_params *params,
                 struct gguf_finding_callback report,
                 struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
