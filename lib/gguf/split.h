/* SPDX-License-Identifier: MIT */
/* split.h - split a model into several files, and merge them
 *
 * A split set is one model in several GGUF files, its shards. They lie in one
 * folder and are named PREFIX-00001-of-0000N.gguf up to
 * PREFIX-0000N-of-0000N.gguf. Each has the keys
 *
 *     split.no             u16   index of the shard, from 0
 *     split.count          u16   number of shards, N
 *     split.tensors.count  i32   number of tensors of all shards together
 *
 * The first shard has all other metadata and may have no tensors. Each tensor
 * is in one shard. Convention: llama.cpp (commit d32676d), gguf-split and
 * loader.
 *
 * gguf_file_open() (file.h) opens a set as one file. The functions here write
 * one. To split:
 *
 *   1. gguf_file_open() opens the model.
 *   2. gguf_split_plan_create() assigns its tensors to shards.
 *   3. gguf_split_plan_shard() shows the plan, if wanted.
 *   4. gguf_split_plan_write() writes the shards.
 *   5. gguf_split_plan_destroy() and gguf_file_close() free both.
 *
 *     struct gguf_split_params params = GGUF_INIT(struct gguf_split_params);
 *     params.max_size = UINT64_C(4) << 30;
 *     if (gguf_file_open(&from, path, NULL, &err) != GGUF_OK ||
 *         gguf_split_plan_create(&plan, from, &params, &err) != GGUF_OK ||
 *         gguf_split_plan_write(plan, prefix, NULL, &err) != GGUF_OK)
 *         return fail(err.message);
 *
 * To merge a set, open it and call gguf_split_merge().
 */
#ifndef GGUF_SPLIT_H
#define GGUF_SPLIT_H

#include <gguf/file.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_SPLIT_MAX_FILES 65535 /* largest number of shards of a set */

/* ----------------------------------------------------- names of shards --- */

/* Format the name of a shard: PREFIX-NNNNN-of-NNNNN.gguf.
 *
 * out      Receives the name, NUL-terminated.
 * size     Bytes at out.
 * prefix   Prefix of the set. It may include a folder.
 * no       Number of the shard, from 1.
 * count    Number of shards.
 *
 * GGUF_OK          out is the name.
 * GGUF_E_INVALID   no is not from 1 to count, or count is above
 *                  GGUF_SPLIT_MAX_FILES.
 * GGUF_E_LIMIT     The name does not fit in size bytes.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_name_format(char *out, size_t size, const char *prefix, unsigned no,
                       unsigned count, struct gguf_error *err) GGUF_MUST_CHECK;

/* Parse the name of a shard.
 *
 * path          Path of a file, NUL-terminated.
 * prefix_size   Receives the length of the prefix in bytes. May be NULL.
 * no            Receives the number of the shard, from 1. May be NULL.
 * count         Receives the number of shards. May be NULL.
 *
 * Returns false, and changes nothing, if path does not end in
 * -NNNNN-of-NNNNN.gguf with numbers that a shard may have.
 *
 * Threads: any. Since: 0.1 */
GGUF_API bool gguf_split_name_parse(const char *path, size_t *prefix_size,
                                    unsigned *no, unsigned *count);

/* ---------------------------------------------------------- splitting --- */

/* How to divide tensors among shards. At least one member must be set. */
struct gguf_split_params {
    size_t struct_size; /* size of this structure in bytes */

    uint64_t max_tensors; /* most tensors of a shard; 0: no limit */
    uint64_t max_size;    /* largest file size of a shard in bytes; 0: no
                           * limit */
    bool no_tensor_first; /* write metadata only to the first shard */

    /* End shards between layers only. Consecutive tensors named blk.N. with
     * the same N stay together, and so do consecutive tensors with other
     * names. Without a limit, each such group is a shard of its own. */
    bool by_layer;
};
#define GGUF_SPLIT_PARAMS_INIT GGUF_INIT(struct gguf_split_params)

/* How to write shards or a merged file. */
struct gguf_split_output_params {
    size_t struct_size; /* size of this structure in bytes */

    bool force;   /* replace existing files */
    bool no_sync; /* do not wait for the disk */

    /* Called with the bytes of tensor data that are done and all of them, on
     * the thread that called. */
    struct gguf_progress_callback progress;

    /* Merge with a journal, and resume an interrupted merge:
     * gguf_split_merge(). Ignored when shards are written. */
    bool resume;
};
#define GGUF_SPLIT_OUTPUT_PARAMS_INIT                                         \
    GGUF_INIT(struct gguf_split_output_params)

/* Assignment of a model's tensors to shards. A plan does not change: any
 * number of threads may read it. */
struct gguf_split_plan;

/* Shard of a plan. Only the library makes it; later versions may add members at
 * its end. */
struct gguf_split_shard {
    size_t first_tensor; /* index of its first tensor in the model's list */
    size_t n_tensors;    /* number of its tensors, consecutive in that list */
    uint64_t file_size;  /* size of its file in bytes */
};

/* Plan how to split a model.
 *
 * out      Receives the plan. NULL after a failure.
 * from     Model to split. It must stay open until the plan is destroyed. It
 *          may be a set, which is split anew.
 * params   How to divide the tensors.
 *
 * Tensors keep their order, and each shard is filled up to the limits in
 * params. Shards have the alignment of the model, and general.alignment if the
 * model has that key. No tensor data is read.
 *
 * If a gguf_writer would lay out the model's file differently (gaps, another
 * order, missing padding, bytes at the end), or if a model in one file has
 * keys of a split set, the first shard gets keys that record this, so that
 * merging restores the file byte for byte: gguf(5).
 *
 * Destroy *out with gguf_split_plan_destroy().
 *
 * GGUF_OK              *out is the plan.
 * GGUF_E_INVALID       params set no rule.
 * GGUF_E_UNSUPPORTED   from is one shard of a set, opened by itself.
 * GGUF_E_LIMIT         A tensor, a layer (by_layer) or the metadata alone
 *                      exceeds a shard. Or more than GGUF_SPLIT_MAX_FILES
 *                      shards would be needed. Or more than 64 MiB of the file
 *                      belong to no tensor.
 * GGUF_E_OVERFLOW      A shard does not fit in 63 bits.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_plan_create(struct gguf_split_plan **out,
                       const struct gguf_file *from,
                       const struct gguf_split_params *params,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a plan. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_split_plan_destroy(struct gguf_split_plan *plan);

/* Number of shards. Threads: any. Since: 0.1 */
GGUF_API size_t gguf_split_plan_n_shards(const struct gguf_split_plan *plan);

/* Shard i of the plan; NULL if i is out of range. It is valid until the plan
 * is destroyed. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_split_shard *
gguf_split_plan_shard(const struct gguf_split_plan *plan, size_t i);

/* Write the shards of a plan.
 *
 * plan     The plan.
 * prefix   Prefix of their names. It may include a folder, which must exist.
 * params   How to write. NULL: the defaults.
 *
 * The shards get their names when all of them are complete and on the disk. If
 * the function fails or the process dies, old files of these names stay as
 * they were. A process that dies while it writes more than 256 shards may
 * leave temporaries (.NAME.PID-N.tmp). Memory does not grow with the tensors.
 *
 * GGUF_OK            All shards are written.
 * GGUF_E_EXIST       A shard exists and params.force is not set. Nothing was
 *                    begun.
 * GGUF_E_INVALID     A shard would overwrite a file of the model.
 * GGUF_E_MISMATCH    The model has changed since it was opened.
 * GGUF_E_NOSPACE     The disk has no room for the shards.
 * GGUF_E_IO          A file cannot be read or written.
 * GGUF_E_CANCELLED   The progress callback returned true.
 * GGUF_E_NOMEM       Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_plan_write(const struct gguf_split_plan *plan, const char *prefix,
                      const struct gguf_split_output_params *params,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------------ merging --- */

/* Merge a set into one file.
 *
 * set      The open set.
 * path     Path of the merged file.
 * params   How to write. NULL: the defaults.
 *
 * The file has the metadata of the first shard without the keys of the set,
 * and the tensors of all shards. A set that gguf_split_plan_write() made from
 * one file gives back that file byte for byte, if the sizes of its data types
 * are known.
 *
 * With params.resume, the file grows as PATH.resume-data, and the journal
 * PATH.resume notes every 32 MiB and after each tensor how far it is complete,
 * with a digest. A merge that fails, is cancelled or killed leaves both. The
 * next merge with resume checks that the inputs and the version of the library
 * are the same, reads back the complete part, and continues after it. A merge
 * that completed nothing leaves nothing.
 *
 * GGUF_OK              The file is written.
 * GGUF_E_INVALID       set is not a split set, or path is one of its files.
 * GGUF_E_UNSUPPORTED   set is one shard, opened by itself.
 * GGUF_E_EXIST         path exists and params.force is not set.
 * GGUF_E_MISMATCH      A shard has changed since it was opened. Or, with
 *                      resume, the files at PATH.resume and PATH.resume-data
 *                      were left by another job. They stay.
 * GGUF_E_NOSPACE       The disk has no room for the file.
 * GGUF_E_IO            A file cannot be read or written, or another process
 *                      resumes the same merge.
 * GGUF_E_CANCELLED     The progress callback returned true.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_merge(const struct gguf_file *set, const char *path,
                 const struct gguf_split_output_params *params,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Get the size of the file that gguf_split_merge() would write.
 *
 * set    The open set.
 * size   Receives the number of bytes.
 *
 * GGUF_OK              *size is the number of bytes.
 * GGUF_E_INVALID       set is not a split set.
 * GGUF_E_UNSUPPORTED   set is one shard, opened by itself.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_merge_size(const struct gguf_file *set, uint64_t *size,
                      struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
