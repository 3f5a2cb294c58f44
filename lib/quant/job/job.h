/* SPDX-License-Identifier: MIT */
/* job.h - a quantization job as it lies in memory */
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
#include "kern/kern.h"
#include "recipe/type_choice.h"
#include "imatrix/imatrix_int.h"

/* general.quantization_version, of the block layouts, which runtimes check:
 * ggml's GGML_QNT_VERSION. */
enum { GG_JOB_VERSION = 2 };

/* One tensor of the output and where it comes from. */
struct gg_job_tensor {
    struct gguf_quant_tensor pub;
    const struct gg_data_info *src; /* tensor of the input */
    size_t no;                      /* its number there */
    enum gg_recipe_class cls;
    const struct gg_data_info *scale; /* goes into the weights; NULL */
    bool left_out; /* goes into the weights of another (outer_scale.h) */
    size_t place;  /* in the order of writing, with what is left out */
    const struct gg_imatrix_entry *imatrix; /* NULL: none */
    float *outer;   /* a scale for each matrix, in a tensor of its own after
                     * this one, filled by run; NULL: none */
    uint32_t shard; /* which file it goes to, and its place there */
    size_t index;
};

struct gguf_quant {
    struct gguf_quant_params p; /* allocator, recipe, pool ...; overrides are
                                 * not kept */
    struct gg_mem_arena arena;  /* names, texts */
    struct gg_description in;   /* the input */
    struct gg_job_gguf *gguf;   /* GGUF files that in describes; NULL: none */
    struct gg_data_info *all;   /* tensors of in.list */
    size_t n_in;                /* number of tensors of in.list */
    struct gg_index names;      /* index of all by name */
    struct gg_merged_lora *merge; /* p.n_loras adapters */
    struct gg_data_merged merged; /* in.list with the adapters added */
    struct gg_job_tensor *t;      /* in the order of writing */
    size_t n_t;
    size_t n_all;           /* with what is left out, which comes last */
    struct gguf_meta *meta; /* of the output; of its first file */
    size_t n_shards;        /* files of the output */
    bool ftype_given;       /* general.file_type is of p.meta */
    int64_t n_layers;       /* of the input, and of the output */
    int64_t n_layers_left;
    size_t n_imatrix_unknown; /* importance data of no tensor of the input */
    uint32_t *prune;          /* the layers to leave out, each once and by */
    size_t n_prune;           /* number; those of p are borrowed */
    double *noise; /* of each tensor of the input in each type, where it was
                    * measured (target.h), else 0; NULL: of none */
    uint64_t noise_sample; /* elements of a tensor that were measured */
    struct gg_kern kern;
    struct gguf_quant_totals totals;
};

static inline size_t gg_job_n_mats(const struct gg_job_tensor *t)
{
    return (size_t)(t->pub.n_elements /
                    ((uint64_t)t->pub.ne[0] * (uint64_t)t->pub.ne[1]));
}

/* Tensors of the output that t is: one more with scales of its own. */
static inline size_t gg_job_n_written(const struct gg_job_tensor *t)
{
    return t->outer ? 2 : 1;
}

/* Find a tensor of the input by name, or NULL. */
static inline const struct gg_data_info *
gg_job_find(const struct gguf_quant *q, const char *name)
{
    const uint32_t i = gg_index_find(&q->names, gg_str_z(name));
    return i == GG_INDEX_NONE ? NULL : &q->all[i];
}

/* The tensor of the input as numbers. With compat they are without the scales
 * outside of the blocks. The statuses of gg_data_rows. */
static inline enum gguf_status gg_job_rows(const struct gguf_quant *q,
                                           const struct gg_job_tensor *t,
                                           struct gg_data_rows *out,
                                           struct gguf_error *err)
{
    const struct gg_data *list = q->merge ? &q->merged.over.list : q->in.list;
    return gg_data_rows(list, t->no, out, err);
}

/* Its bytes as they are stored, in the type that it has; NULL: its numbers are
 * computed. */
static inline const uint8_t *gg_job_bytes(const struct gguf_quant *q,
                                          const struct gg_job_tensor *t)
{
    return gg_data_bytes(q->in.list, t->no);
}

/* A job over a model that is described; all that in points to is kept. The
 * statuses of gguf_quant_create. */
enum gguf_status gg_job_create(struct gguf_quant **out,
                               const struct gg_description *in,
                               const struct gguf_quant_params *params,
                               struct gguf_error *err);

/* job_loras.c: open the adapters of q->p and see that they fit. The statuses of
 * gguf_quant_create. */
enum gguf_status gg_job_open_loras(struct gguf_quant *q,
                                   struct gguf_error *err);
void gg_job_close_loras(struct gguf_quant *q);
/* Are the same products added to the tensors of both? */
bool gg_job_has_same_loras(const struct gguf_quant *a,
                           const struct gguf_quant *b);
/* What q->meta says of them. */
enum gguf_status gg_job_set_lora_keys(struct gguf_quant *q,
                                      struct gguf_error *err);

/* job_inputs.c: describe GGUF files in q->gguf and q->in: those of path, or if
 * it is NULL, file, which is kept. The statuses of gguf_quant_create. */
enum gguf_status gg_job_open_input(struct gguf_quant *q, const char *path,
                                   const struct gguf_file *file,
                                   struct gguf_error *err);
void gg_job_close_input(struct gguf_quant *q);

/* job_inputs.c: the i-th file that the job reads weights from; false after the
 * last. */
bool gg_job_input_file(const struct gguf_quant *q, size_t i,
                       struct gg_data_file *out);
/* Note all of them in paths; have they changed since they were opened?
 * GGUF_E_MISMATCH. */
/* Do both read the same? NULL, or a word for what is not the same. */
const char *gg_job_input_difference(const struct gguf_quant *a,
                                    const struct gguf_quant *b);
enum gguf_status gg_job_list_inputs(const struct gguf_quant *q,
                                    struct gguf_paths *paths,
                                    struct gguf_error *err);
enum gguf_status gg_job_check_inputs(const struct gguf_quant *q,
                                     struct gguf_error *err);
/* Does any of them come through a reader? */
bool gg_job_has_reader(const struct gguf_quant *q);
/* Hold bytes off to off + size of a tensor of the input before they are read:
 * gg_data_hold. t may be another job's over the same input. */
enum gguf_status gg_job_hold(const struct gguf_quant *q,
                             const struct gg_job_tensor *t, uint64_t off,
                             uint64_t size, struct gguf_error *err);
/* Release bytes that gg_job_hold held. */
void gg_job_release(const struct gguf_quant *q, const struct gg_job_tensor *t,
                    uint64_t off, uint64_t size);
/* Bytes of it are read soon, or were: gg_data_advise. */
void gg_job_advise(const struct gguf_quant *q, const struct gg_job_tensor *t,
                   uint64_t off, uint64_t size, enum gg_mapfile_advice how);
enum gguf_status gg_job_check_input_file(const struct gg_data_file *in,
                                         struct gguf_error *err);

/* job_plan.c: fill q->all and q->names from q->in, then q->t, in order and with
 * types, from these and q->p. */
enum gguf_status gg_job_make_plan(struct gguf_quant *q,
                                  struct gguf_error *err);

/* Is this layer left out? How many before it are? */
bool gg_job_is_pruned(const struct gguf_quant *q, int64_t layer);
int64_t gg_job_n_pruned(const struct gguf_quant *q, int64_t layer);

/* job_types.c: give a tensor its type and what follows from it; text, which is
 * copied, tells why. */
enum gguf_status gg_job_set_type(struct gguf_quant *q,
                                 struct gg_job_tensor *jt, uint32_t wanted,
                                 uint32_t to, enum gguf_quant_reason why,
                                 const char *text, struct gguf_error *err);

/* The importance data for a tensor, whatever its type; NULL if there are none
 * of its shape. */
const struct gg_imatrix_entry *gg_job_imatrix(const struct gguf_quant *q,
                                              const struct gg_job_tensor *jt);

/* The sums over all tensors. */
void gg_job_update_totals(struct gguf_quant *q);

/* job_metadata.c: fill q->meta. */
enum gguf_status gg_job_make_metadata(struct gguf_quant *q,
                                      struct gguf_error *err);

/* job_files.c: give each tensor its file; *size is that of all files. */
enum gguf_status gg_job_plan_files(struct gguf_quant *q, uint64_t *size,
                                   struct gguf_error *err);

/* A writer for file no of the output, with all its tensors. */
enum gguf_status gg_job_create_writer(const struct gguf_quant *q, size_t no,
                                      struct gguf_writer **out,
                                      struct gguf_error *err);

/* What the output's tensors are aligned to, once it has been laid out. */
uint32_t gg_job_alignment(const struct gguf_quant *q);

/* The path of file no, for path as it was given: allocated. */
enum gguf_status gg_job_format_path(const struct gguf_quant *q,
                                    const char *path, size_t no, char **out,
                                    struct gguf_error *err);

/* Use the kernels of these levels only (GG_CPU_...): for tests, which compare
 * the levels' bytes. */
void gg_job_set_cpu(struct gguf_quant *q, uint32_t cpu);

#endif
