/* SPDX-License-Identifier: MIT */
/* job.h - internals of a quantization job
 *
 * A job has a description of its input (data/description.h) and a plan: the
 * tensors of the output, each with its source and its type. job_inputs.c opens
 * GGUF files, job_plan.c and job_types.c make the plan, job_metadata.c makes
 * the metadata, and job_files.c divides the tensors among the output files.
 * quant/run writes these files.
 */
#ifndef GG_QUANT_JOB_H
#define GG_QUANT_JOB_H

#include "base/index.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/description.h"
#include "data/gguf_list.h"
#include "file/file_int.h"
#include "data/merged.h"
#include "gguf/quant.h"
#include "gguf/split.h"
#include "gguf/writer.h"
#include "dtype/interleave.h"
#include "kern/kern.h"
#include "recipe/type_choice.h"
#include "imatrix/imatrix_int.h"

/* Version of the block layouts, which equals ggml's GGML_QNT_VERSION. It is the
 * value of the key general.quantization_version, which runtimes check. */
enum { GG_JOB_VERSION = 2 };

/* One tensor of the output and where it comes from. */
struct gg_job_tensor {
    struct gguf_quant_tensor pub;   /* public view */
    const struct gg_data_info *src; /* tensor of the input */
    size_t no;                      /* index of src in the input, from 0 */
    enum gg_recipe_class cls;       /* class that rules select by */

    /* Scale tensor of the input that is multiplied into the weights; NULL:
     * none. */
    const struct gg_data_info *scale;
    /* true: not written, a scale that another tensor's weights absorb */
    bool left_out;
    /* Position in the order of writing. Tensors that are left out count, too:
     * the position is set before they are moved to the end of gguf_quant.t. */
    size_t place;
    const struct gg_imatrix_entry *imatrix; /* importance data; NULL: none */

    /* Array of one scale per matrix. All of them are written as one tensor
     * after this one. The plan allocates the array, and the run computes the
     * scales. NULL: no scales. */
    float *outer;
    /* true: rows move into groups of rows or out of them (dtype/interleave.h),
     * and nothing is encoded */
    bool moves;
    uint32_t shard; /* number of its output file */
    size_t index;   /* index of the tensor in that file, from 0 */
};

struct gguf_quant {
    /* Copy of the caller's params. Pointers that are valid only during
     * gg_job_create() are NULL after it. */
    struct gguf_quant_params p;
    struct gg_mem_arena arena; /* memory of names and texts */
    struct gg_description in;  /* the input */
    /* GGUF files that the input consists of. NULL: a converter made the
     * description. */
    struct gg_job_gguf *gguf;
    struct gg_data_info *all;     /* tensors of in.list */
    size_t n_in;                  /* number of tensors of in.list */
    struct gg_index names;        /* index of all by name */
    struct gg_merged_lora *merge; /* p.n_loras adapters */
    struct gg_data_merged merged; /* in.list with the adapters added */
    struct gg_job_tensor *t;      /* tensors in the order of writing; those
                                   * left out come last */
    size_t n_t;                   /* elements of t that are written */
    size_t n_all;                 /* elements of t, those left out included */
    struct gguf_meta *meta;   /* metadata of the output (of its first file) */
    size_t n_shards;          /* files of the output */
    bool ftype_given;         /* the caller set general.file_type */
    int64_t n_layers;         /* layers of the input */
    int64_t n_layers_left;    /* layers of the output */
    size_t n_imatrix_unknown; /* entries of the imatrix that match no tensor */
    uint32_t *prune;          /* layers to leave out: ascending, no repeats */
    size_t n_prune;           /* number of layers to leave out */

    /* [n_in][GG_N_DTYPES], the quantization error (target.h) that each input
     * tensor would have in each type. 0: not measured. NULL: nothing was
     * measured. */
    double *noise;
    /* Largest number of elements that were measured per tensor. UINT64_MAX: no
     * limit. */
    uint64_t noise_sample;
    struct gg_kern kern;             /* kernels of the processor */
    struct gguf_quant_totals totals; /* sums over the tensors */
};

/* Number of matrices of a tensor. */
static inline size_t gg_job_n_mats(const struct gg_job_tensor *t)
{
    return (size_t)(t->pub.n_elements /
                    ((uint64_t)t->pub.ne[0] * (uint64_t)t->pub.ne[1]));
}

/* Type GG_DT_... of a tensor's rows when they are encoded: the plain type of an
 * interleaved one, whose groups are made of the encoded rows. */
static inline int gg_job_row_type(const struct gg_job_tensor *t)
{
    return gg_interleave_plain(gg_dtype_index(t->pub.to));
}

/* Encoder of rows of the type gg_job_row_type(t), or NULL. */
static inline gg_kern_encode_fn *gg_job_encoder(const struct gguf_quant *q,
                                                const struct gg_job_tensor *t)
{
    const struct gg_codec_kern *own =
        &q->kern.codec[gg_dtype_index(t->pub.to)];
    return own->encode_apart ? own->encode_apart
                             : q->kern.codec[gg_job_row_type(t)].encode;
}

/* Number of tensors that are written for t: t itself, and the tensor of its
 * scales if t->outer is not NULL. */
static inline size_t gg_job_n_written(const struct gg_job_tensor *t)
{
    return t->outer ? 2 : 1;
}

/* Find a tensor of the input by name; NULL if it does not exist. */
static inline const struct gg_data_info *
gg_job_find(const struct gguf_quant *q, const char *name)
{
    const uint32_t i = gg_index_find(&q->names, gg_str_z(name));
    return i == GG_INDEX_NONE ? NULL : &q->all[i];
}

/* Prepare to read the source of t as floats. The products of the adapters are
 * added. The scale tensor is multiplied in, unless gguf_quant_params.compat is
 * set. Statuses: those of gg_data_rows(). */
static inline enum gguf_status gg_job_rows(const struct gguf_quant *q,
                                           const struct gg_job_tensor *t,
                                           struct gg_data_rows *out,
                                           struct gguf_error *err)
{
    const struct gg_data *list = q->merge ? &q->merged.over.list : q->in.list;
    return gg_data_rows(list, t->no, out, err);
}

/* Stored bytes of the source of t, without the products of adapters. NULL: the
 * source is not stored, but computed when it is read. */
static inline const uint8_t *gg_job_bytes(const struct gguf_quant *q,
                                          const struct gg_job_tensor *t)
{
    return gg_data_bytes(q->in.list, t->no);
}

/* Create a job for a described model. The struct *in is copied. Everything that
 * its members point to must outlive the job. Statuses: those of
 * gguf_quant_create(). */
enum gguf_status gg_job_create(struct gguf_quant **out,
                               const struct gg_description *in,
                               const struct gguf_quant_params *params,
                               struct gguf_error *err);

/* job_loras.c: open the adapters of q->p and check that they fit the input.
 * Statuses: those of gguf_quant_create. */
enum gguf_status gg_job_open_loras(struct gguf_quant *q,
                                   struct gguf_error *err);
/* Close the adapters. Does nothing if the job does not have any. */
void gg_job_close_loras(struct gguf_quant *q);
/* Do two jobs have the same open adapter files with the same scales? */
bool gg_job_has_same_loras(const struct gguf_quant *a,
                           const struct gguf_quant *b);
/* Write the keys quantize.lora.* to q->meta. */
enum gguf_status gg_job_set_lora_keys(struct gguf_quant *q,
                                      struct gguf_error *err);

/* job_inputs.c: open GGUF files and describe them in q->gguf and q->in. The
 * input is path or, if path is NULL, the open file, which must stay open until
 * the job is destroyed. Statuses: those of gguf_quant_create(). */
enum gguf_status gg_job_open_input(struct gguf_quant *q, const char *path,
                                   const struct gguf_file *file,
                                   struct gguf_error *err);
/* Close the files of q->gguf. Does nothing if q->gguf is NULL. */
void gg_job_close_input(struct gguf_quant *q);

/* job_inputs.c: get file i of those that the job reads weights from: the files
 * of the input, then the files of the adapters. Returns false if there are only
 * i such files or fewer. */
bool gg_job_input_file(const struct gguf_quant *q, size_t i,
                       struct gg_data_file *out);
/* Do two jobs read the same input, with the same adapters? NULL: yes. Otherwise
 * a word for the difference: "input" or "adapters". In job_inputs.c. */
const char *gg_job_input_difference(const struct gguf_quant *a,
                                    const struct gguf_quant *b);
/* Add the paths of all input files, those of adapters included, to paths. */
enum gguf_status gg_job_list_inputs(const struct gguf_quant *q,
                                    struct gguf_paths *paths,
                                    struct gguf_error *err);
/* Check all input files. GGUF_E_MISMATCH: a file has changed since it was
 * opened. */
enum gguf_status gg_job_check_inputs(const struct gguf_quant *q,
                                     struct gguf_error *err);
/* Is any input file read by functions of the caller (struct gguf_reader)? */
bool gg_job_has_reader(const struct gguf_quant *q);
/* Hold size bytes of t's source, from offset off on, in memory. Call it before
 * these bytes are read (gg_data_hold). t may belong to another job with the
 * same input. */
enum gguf_status gg_job_hold(const struct gguf_quant *q,
                             const struct gg_job_tensor *t, uint64_t off,
                             uint64_t size, struct gguf_error *err);
/* Release bytes that gg_job_hold holds. */
void gg_job_release(const struct gguf_quant *q, const struct gg_job_tensor *t,
                    uint64_t off, uint64_t size);
/* Tell the system that bytes of the source of t are needed soon, or no longer
 * (gg_data_advise). */
void gg_job_advise(const struct gguf_quant *q, const struct gg_job_tensor *t,
                   uint64_t off, uint64_t size, enum gg_mapfile_advice how);
/* Check one input file as gg_job_check_inputs() does. */
enum gguf_status gg_job_check_input_file(const struct gg_data_file *in,
                                         struct gguf_error *err);

/* job_plan.c: fill q->all and q->names from q->in. Then fill q->t: its tensors,
 * their order and their types follow from q->all and q->p. */
enum gguf_status gg_job_make_plan(struct gguf_quant *q,
                                  struct gguf_error *err);

/* Is a layer of the input left out of the output? */
bool gg_job_is_pruned(const struct gguf_quant *q, int64_t layer);
/* Number of left-out layers that come before this layer of the input. */
int64_t gg_job_n_pruned(const struct gguf_quant *q, int64_t layer);

/* job_types.c: set the type of a tensor, and update all members that depend on
 * it.
 *
 * wanted   Type that was chosen, whether or not its blocks fit the rows.
 * to       Type to store: wanted, or its replacement if wanted does not fit.
 * text     Description of the reason. It is copied. */
enum gguf_status gg_job_set_type(struct gguf_quant *q,
                                 struct gg_job_tensor *jt, uint32_t wanted,
                                 uint32_t to, enum gguf_quant_reason why,
                                 const char *text, struct gguf_error *err);

/* Importance data for a tensor, whether or not its type uses them. NULL: the
 * imatrix has no data for the tensor, or data of another shape. */
const struct gg_imatrix_entry *gg_job_imatrix(const struct gguf_quant *q,
                                              const struct gg_job_tensor *jt);

/* Recompute the sums over all tensors. */
void gg_job_update_totals(struct gguf_quant *q);

/* job_metadata.c: fill q->meta. */
enum gguf_status gg_job_make_metadata(struct gguf_quant *q,
                                      struct gguf_error *err);

/* job_files.c: assign each tensor to a file; *size receives the size of all
 * files. */
enum gguf_status gg_job_plan_files(struct gguf_quant *q, uint64_t *size,
                                   struct gguf_error *err);

/* Create a writer for output file no, counted from 0, with all its tensors. */
enum gguf_status gg_job_create_writer(const struct gguf_quant *q, size_t no,
                                      struct gguf_writer **out,
                                      struct gguf_error *err);

/* Alignment of tensor data in the output, in bytes. Call it only after
 * gg_job_make_metadata(). */
uint32_t gg_job_alignment(const struct gguf_quant *q);

/* Make the path of output file no, counted from 0, from the path given by the
 * caller. Free *out with gg_mem_free() and the job's allocator. */
enum gguf_status gg_job_format_path(const struct gguf_quant *q,
                                    const char *path, size_t no, char **out,
                                    struct gguf_error *err);

/* Use only the kernels of the levels whose bits (GG_CPU_...) are set. For tests
 * that compare the levels. */
void gg_job_set_cpu(struct gguf_quant *q, uint32_t cpu);

#endif
