/* SPDX-License-Identifier: MIT */
/* split.h - one model in several files
 *
 * A split set is PREFIX-00001-of-0000N.gguf to PREFIX-0000N-of-0000N.gguf in
 * one folder, each a GGUF file with the keys
 *
 *     split.no             u16   0 in the first shard, 1 in the second ...
 *     split.count          u16   N
 *     split.tensors.count  i32   tensors of all shards together
 *
 * The first shard has all other metadata and may have no tensors; a tensor is
 * in one shard only. Convention: llama.cpp (commit d32676d), gguf-split and
 * loader.
 *
 * gguf_file_open (file.h) opens a set as one file. Here files are split, and
 * sets merged:
 *
 *     gguf_file_open(&from, path, NULL, &err);
 *     gguf_split_plan_create(&plan, from, &params, &err);
 *     gguf_split_plan_write(plan, prefix, NULL, &err);
 *     gguf_split_plan_destroy(plan);
 *     gguf_file_close(from);
 */
#ifndef GGUF_SPLIT_H
#define GGUF_SPLIT_H

#include <gguf/file.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_SPLIT_MAX_FILES 65535

/* ------------------------------------------------------------- names --- */

/* PREFIX-%05u-of-%05u.gguf into out; no counts from 1. GGUF_E_INVALID (no or
 * count out of range), GGUF_E_LIMIT (does not fit in size bytes with its NUL).
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_name_format(char *out, size_t size, const char *prefix, unsigned no,
                       unsigned count, struct gguf_error *err) GGUF_MUST_CHECK;

/* 1 if path ends in -NNNNN-of-NNNNN.gguf with 1 <= no <= count, and how many
 * bytes come before; else 0. The pointers may be NULL. Since: 0.1 */
GGUF_API int gguf_split_name_parse(const char *path, size_t *prefix_size,
                                   unsigned *no, unsigned *count);

/* A size as people write it: a number, which may have a fraction, and a unit:
 * none or B (bytes), k, M, G, T (powers of 1000), Ki, Mi, Gi, Ti (powers of
 * 1024), each in either case and with or without a B after it. Fractions of a
 * byte are dropped. GGUF_E_INVALID, GGUF_E_OVERFLOW. Since: 0.1 */
GGUF_API enum gguf_status
gguf_size_parse(const char *text, uint64_t *bytes,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* ---------------------------------------------------------- splitting --- */

struct gguf_split_params {
    size_t struct_size;
    uint64_t max_tensors; /* of a shard; 0: any number */
    uint64_t max_size;    /* bytes of a shard's whole file; 0: any */
    int no_tensor_first;  /* the first shard has metadata only */
    int by_layer;         /* shards end between layers: runs of tensors named
                           * blk.N. with the same N stay together, and so do
                           * runs of other names. Without a limit each run is a
                           * shard */
};
#define GGUF_SPLIT_PARAMS_INIT GGUF_INIT(struct gguf_split_params)

/* How to write. Works in one thread; progress counts bytes of tensor data. */
struct gguf_split_output_params {
    size_t struct_size;
    int force;                  /* existing files are replaced */
    int no_sync;                /* do not wait for the disk */
    gguf_progress_fn *progress; /* NULL: none */
    void *user;
    int resume; /* of merging: keep a journal, and go on from it: see there */
};
#define GGUF_SPLIT_OUTPUT_PARAMS_INIT                                         \
    GGUF_INIT(struct gguf_split_output_params)

struct gguf_split_plan;

/* Made by the library: it may grow at its end. */
struct gguf_split_shard {
    size_t first_tensor; /* of those of the set */
    size_t n_tensors;
    uint64_t file_size; /* bytes */
};

/* Which tensors go where: in order, each shard as full as params allow. Reads
 * no tensor data. from is kept; it may be split already. Each shard has the
 * alignment of from, and general.alignment if from has it. If a gguf_writer
 * would not lay out the file in the same way (gaps, another order, no padding
 * at the end, bytes after it), or if it has keys of a split set itself, the
 * metadata of the first shard record this: gguf(5). To find out, the bytes
 * between tensors are read. A set of one file counts as a file here.
 *
 * GGUF_E_INVALID params, or params without a rule that divides
 * GGUF_E_LIMIT     a tensor (with by_layer: a layer) or the metadata alone is
 *                  more than a shard may have, or there would be more than
 *                  GGUF_SPLIT_MAX_FILES shards, or more than 64 MiB of the file
 *                  belong to no tensor
 * and what the writer's plan returns. Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_plan_create(struct gguf_split_plan **out,
                       const struct gguf_file *from,
                       const struct gguf_split_params *params,
                       struct gguf_error *err) GGUF_MUST_CHECK;
/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_split_plan_destroy(struct gguf_split_plan *plan);

/* shard: NULL if i is out of range. Since: 0.1 */
GGUF_API size_t gguf_split_plan_n_shards(const struct gguf_split_plan *plan);
GGUF_API const struct gguf_split_shard *
gguf_split_plan_shard(const struct gguf_split_plan *plan, size_t i);

/* Write the shards. They get their names when all of them are complete and on
 * disk: a job that fails, or a process that dies, leaves the files that had
 * those names before. A process that dies while writing more than 256 shards
 * also leaves temporaries (.NAME.PID-N.tmp). An input is never overwritten.
 * job may be NULL. Memory does not grow with the tensors.
 *
 * GGUF_E_EXIST   a shard exists already and job->force is not set: all are
 *                checked before the first is begun
 * GGUF_E_NOSPACE, GGUF_E_IO, GGUF_E_CANCELLED, GGUF_E_NOMEM,
 * GGUF_E_INVALID (an output is an input). Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_plan_write(const struct gguf_split_plan *plan, const char *prefix,
                      const struct gguf_split_output_params *job,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------------ merging --- */

/* All tensors of the set in one file, with the metadata of the first shard
 * without the split keys: a file that gguf_split_plan_write has split comes
 * back byte for byte, if the sizes of its tensors are known. job may be NULL.
 *
 * With job->resume, the file grows as PATH.resume-data, and PATH.resume notes
 * how much of it is complete, with a digest, every 32 MiB and after each
 * tensor. A merge that fails, is cancelled or killed leaves both; the next one
 * with resume checks that the inputs and the version of the library are the
 * same, as gguf_quant_run does, reads back what is complete, and reads the rest
 * of the inputs. One that completes nothing leaves nothing. Files of these
 * names that no such run made are refused and stay: GGUF_E_MISMATCH.
 *
 * GGUF_E_INVALID   set is not split; path is one of its files
 * and what gguf_split_plan_write returns. Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_merge(const struct gguf_file *set, const char *path,
                 const struct gguf_split_output_params *job,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Bytes of the file that gguf_split_merge would write. Since: 0.1 */
GGUF_API enum gguf_status
gguf_split_merge_size(const struct gguf_file *set, uint64_t *size,
                      struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
