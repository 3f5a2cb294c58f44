/* SPDX-License-Identifier: MIT */
/* verify.h - checking a whole model, from its bytes to its meaning
 *
 * gguf_file_check (check.h) looks at a file as a container. This looks at
 * what it contains, too, and at all files of a split model together:
 *
 *   the vocabulary     as many scores and token types as tokens, ids in range,
 *                      byte tokens and merges well formed, no token twice
 *   hyperparameters    present, possible, and consistent
 *   tensors            those that the architecture needs and no others, with
 *                      the shapes that hyperparameters and vocabulary imply
 *
 * The last two are checked for architectures that the library knows, which are
 * more than it can evaluate; for others a note says that they are not. A model
 * that passes without errors and whose tensor types the library knows can be
 * loaded; a model with errors is certainly wrong.
 *
 *     static int show(void *user, const struct gguf_finding *f)
 *     {
 *         puts(f->message);
 *         return 0;
 *     }
 *     ... gguf_file_verify(file, NULL, show, NULL, &err)
 */
#ifndef GGUF_VERIFY_H
#define GGUF_VERIFY_H

#include <gguf/check.h>
#include <gguf/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Report findings in a fixed order: of each file in turn as gguf_file_check
 * does, then vocabulary, hyperparameters, tensors, then payload if
 * params->payload is set. Without it no tensor data is read, and a large
 * vocabulary takes tens of milliseconds and some ten megabytes. params may be
 * NULL; report is required. Statuses and threads: as gguf_file_check.
 *
 * Of one shard that was opened alone, the tensors are not compared with the
 * hyperparameters; and if it was opened by its path, the set is opened too, and
 * a failure of that is the finding "broken-set". Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_verify(const struct gguf_file *file,
                 const struct gguf_check_params *params,
                 gguf_finding_fn *report, void *user,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Report the findings that the file would have if it, or the first shard of
 * the set, had the pairs of meta and no others. Nothing is written. Offsets
 * count in that imagined file; the finding's file is the existing one. Padding
 * between tensors is not checked. report is required. GGUF_E_INVALID also:
 * params->payload; and what gguf_writer_create says of meta. Since: 0.1 */
GGUF_API enum gguf_status gguf_file_verify_meta(
    const struct gguf_file *file, const struct gguf_meta *meta,
    const struct gguf_check_params *params, gguf_finding_fn *report,
    void *user, struct gguf_error *err) GGUF_MUST_CHECK;

/* gguf_file_verify of the file or set that gguf_file_open opens at path. A
 * failure to open it is a finding as well (its file is NULL): "malformed",
 * "version", "truncated", "overflow", "row-length", "limit", "duplicate",
 * "broken-set". Statuses of opening that say nothing about contents are
 * returned: GGUF_E_IO, GGUF_E_NOMEM, GGUF_E_INVALID, and GGUF_E_NOTFOUND if
 * there is neither a file nor a set; shards that are missing from a set are a
 * finding. file_params may be NULL; report is required. Since: 0.1 */
GGUF_API enum gguf_status
gguf_path_verify(const char *path, const struct gguf_file_params *file_params,
                 const struct gguf_check_params *params,
                 gguf_finding_fn *report, void *user,
                 struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
