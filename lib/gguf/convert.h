/* SPDX-License-Identifier: MIT */
/* convert.h - from a Hugging Face folder to a GGUF file
 *
 * A folder has config.json, the weights as safetensors, and a tokenizer
 * (tokenizer.model, tokenizer.json or vocab.txt, with tokenizer_config.json,
 * generation_config.json, modules.json, a chat template and a model card,
 * README.md, where there are some). Opening it makes the plan of the GGUF file
 * that it becomes: metadata, and tensors with their types, each made of one
 * tensor of the folder or several. Nothing is read of the weights but their
 * headers. Jobs of quantization (quant.h) then write it, in its own types or
 * any others, in bounded memory:
 *
 *     gguf_convert_open(&c, "Qwen3-8B", NULL, &err);
 *     gguf_recipe_preset(&recipe, "Q4_K_M", NULL, &err);
 *     params.recipe = recipe;
 *     gguf_convert_create_job(&job, c, &params, &err);
 *     gguf_quant_run(job, "Qwen3-8B-Q4_K_M.gguf", NULL, &err);
 *
 * Its own types are F32 for vectors and what models read as F32, and the
 * folder's for matrices; BF16 where these are 8-bit floats, F32 where they have
 * 64 bits. Weights that are packed in fewer bits (GPTQ, AWQ,
 * compressed-tensors; quantization_config in config.json) have the type of
 * their scales, F16 or BF16, or are MXFP4 blocks, which are copied.
 *
 * A folder that has adapter_config.json is one of a LoRA adapter (PEFT), and
 * becomes an adapter's file, as gguf_adapter_create takes it; the model that it
 * is for is params->base, of which config.json, or the keys, are read.
 *
 * A folder need not be on this machine: of one that params->opener takes, each
 * file is opened as its path, "/", and its name, of which GGUF_E_NOTFOUND says
 * that there is none. Headers are read then, and numbers as a job comes to
 * them, of which no more is kept than what its threads are at and what lies
 * around it. Weights whose rows are put together of ones that lie apart, as
 * where a matrix is turned, are kept as long as the matrix is written.
 *
 * An object is used by one thread at a time.
 */
#ifndef GGUF_CONVERT_H
#define GGUF_CONVERT_H

#include <gguf/kv.h>
#include <gguf/paths.h>
#include <gguf/progress.h>
#include <gguf/quant.h>
#include <gguf/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_convert;

/* Kind of a note. */
enum gguf_convert_note_kind {
    GGUF_CONVERT_REMARK, /* a decision that loses nothing the folder holds, or
                          * a loss that every GGUF file has */
    GGUF_CONVERT_WARNING /* a decision by which the file may compute another
                          * function, or give other tokens, than the folder */
};

/* A note of one line about a decision that no file of the folder states. */
typedef void gguf_convert_note_fn(void *user, enum gguf_convert_note_kind kind,
                                  const char *line);

struct gguf_convert_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    const struct gguf_limits *limits;       /* of tensors; NULL: defaults */
    const char *pre;           /* tokenizer.ggml.pre; NULL: by the tokenizer's
                                * description. Borrowed */
    const char *const *ignore; /* n_ignore Perl regular expressions: tensors
                                * whose names match are left out; a note of
                                * those that match none. Borrowed */
    size_t n_ignore;
    const char *base; /* of an adapter: the model that it is for, a folder or a
                       * GGUF file. Borrowed; NULL: none */
    gguf_convert_note_fn *note; /* called by gguf_convert_open; NULL: none */
    void *note_user;
    const struct gguf_opener
        *opener; /* of folders that are elsewhere (reader.h); kept, with the
                  * readers that it makes, until gguf_convert_close; NULL:
                  * there are none */
    int dense_modules; /* 1: also the matrices after pooling of a folder of
                        * sentence-transformers where llama.cpp's converter
                        * leaves them out (Gemma 3); 0: a note says so */
    int any; /* 1: make a job although verifying the plan finds errors, as
                  * of a folder that is not a whole model; 0: refuse it */
    int ignore_normalizer; /* 1: leave out, with a note, what tokenizer.json's
                            * normalizer does to texts and no GGUF file holds;
                            * 0: refuse the tokenizer */
    int reranker;          /* kind of a Qwen3ForCausalLM or
                   * Qwen3VLForConditionalGeneration: 1: reranker; 2: language
                   * model; 0: by the evidence that the folder has */
};
#define GGUF_CONVERT_PARAMS_INIT GGUF_INIT(struct gguf_convert_params)

/* Open the folder at path and make the plan. params may be NULL. Reading a
 * header of safetensors takes at most 1 KiB of memory for each of its tensors.
 *
 * GGUF_E_NOTFOUND     a file that must be there; a key of config.json
 * GGUF_E_ARCH         no such architecture is converted
 * GGUF_E_UNSUPPORTED  a tokenizer of another kind, whose pre-tokenizer is not
 *                     recognised, or whose normalizer no GGUF file holds: the
 *                     message has its description
 * GGUF_E_TENSOR       tensors that have no place in the file: it lists them;
 *                     parts of one tensor that do not fit each other
 * GGUF_E_VOCAB        the tokenizer is inconsistent
 * GGUF_E_FORMAT, GGUF_E_TRUNCATED, GGUF_E_OVERFLOW, GGUF_E_LIMIT,
 * GGUF_E_DUPLICATE, GGUF_E_MISMATCH   one of the files is malformed: its name
 *                     begins the message
 * GGUF_E_IO, GGUF_E_NOMEM, GGUF_E_INVALID (params)
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_convert_open(struct gguf_convert **out, const char *path,
                  const struct gguf_convert_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Jobs that were made of it must be gone. Since: 0.1 */
GGUF_API void gguf_convert_close(struct gguf_convert *c);

/* One tensor of the plan. All it points to belongs to the object. Made by the
 * library: it may grow at its end. */
struct gguf_convert_tensor {
    const char *name;
    unsigned n_dims;
    int64_t ne[4];    /* elements, fastest dimension first */
    uint32_t dtype;   /* id of its own type */
    const char *from; /* the tensor of the folder that it is made of; the
                        * first, if it is made of several */
    size_t n_from;    /* tensors of the folder that it is made of */
    const char *how;  /* "as it is", or what is done to it, in words */
};

/* In the order of the folder; NULL if i is out of range. Since: 0.1 */
GGUF_API size_t gguf_convert_n_tensors(const struct gguf_convert *c);
GGUF_API const struct gguf_convert_tensor *
gguf_convert_tensor(const struct gguf_convert *c, size_t i);

/* The name of tensor i's source no, below n_from; NULL out of range.
 * Since: 0.1 */
GGUF_API const char *gguf_convert_source(const struct gguf_convert *c,
                                         size_t i, size_t no);

/* Tensors of the folder that are left out because they are known to carry
 * nothing, or were to be ignored: how many, and their names; NULL if i is out
 * of range. Since: 0.1 */
GGUF_API size_t gguf_convert_n_omitted(const struct gguf_convert *c);
GGUF_API const char *gguf_convert_omitted(const struct gguf_convert *c,
                                          size_t i);

/* Texts belong to the object. Made by the library: it may grow at its end. */
struct gguf_convert_summary {
    const char *kind; /* "language model", "embedding model", "classifier",
                       * "reranker", "adapter" or "encoder" */
    const char *class_name; /* first of "architectures"; of an adapter, the
                             * base model's; not escaped */
    const char *reason;     /* how the kind was told, as "its class" or
                             * "modules.json"; not escaped */
    size_t n_tokens_left;   /* added tokens that are left out because the
                             * embedding has no row for them */
};

/* Return the kind of model that the folder was taken for, and the number of
 * tokens that are left out; the object's. Since: 0.1 */
GGUF_API const struct gguf_convert_summary *
gguf_convert_summary(const struct gguf_convert *c);

/* The metadata of the plan; the object's. Since: 0.1 */
GGUF_API const struct gguf_meta *
gguf_convert_meta(const struct gguf_convert *c);

/* A job that writes what was planned, in the types that params->recipe
 * chooses; it is as gguf_quant_create makes one of a file, with
 * allow_requantize. c is kept. GGUF_E_MISMATCH: what was planned, with the
 * pairs of params->meta, is not a sound model: the first error that
 * gguf_file_verify finds. Adapters are not verified, nor is anything where
 * gguf_convert_params has any. */
GGUF_API enum gguf_status
gguf_convert_create_job(struct gguf_quant **out, struct gguf_convert *c,
                        const struct gguf_quant_params *params,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- and back ---- */

/* Called with the name of a key of the file that the folder does not say, or
 * says otherwise. */
typedef void gguf_folder_note_fn(void *user, const char *key);

struct gguf_folder_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc */
    const struct gguf_limits *limits;       /* NULL: defaults */
    uint32_t dtype; /* F32, F16 or BF16: of all numbers; GGUF_DTYPE_NONE: these
                     * stay what they are, others become F16 */
    uint64_t max_file_size; /* bytes of numbers in a file; 0: one file */
    int force;              /* files that exist are replaced in the end */
    int no_sync;
    gguf_progress_fn *progress; /* bytes of numbers; NULL: none */
    void *progress_user;
    gguf_folder_note_fn *note; /* NULL: none */
    void *note_user;
    const struct gguf_opener
        *opener; /* of paths that are no files' (reader.h);
                                       * NULL: none */
    const struct gguf_paths
        *paths; /* other files of the run, which are not replaced
                 * (paths.h); NULL: none */
};
#define GGUF_FOLDER_PARAMS_INIT                                               \
    {                                                                         \
        sizeof(struct gguf_folder_params), NULL, NULL, GGUF_DTYPE_NONE, 0, 0, \
            0, NULL, NULL, NULL, NULL, NULL, NULL                             \
    }

/* Write the model at path, a file or a split set, as a folder that transformers
 * load: config.json, model.safetensors, or several with their index, the
 * tokenizer, tokenizer_config.json, and README.md and generation_config.json
 * with what the file says of general.* What converting a folder does to names
 * and numbers is done backwards; before anything is written the folder is
 * converted on paper, and has to become the tensors of the file. dir is made if
 * it is not there. Files get their names together when all are complete, and a
 * failure leaves none. Memory is bounded.
 *
 * GGUF_E_ARCH         the architecture is none that is converted
 * GGUF_E_TENSOR       a tensor that no folder of it has
 * GGUF_E_UNSUPPORTED  a type that is not decoded, a vocabulary that is not
 *                     written
 * GGUF_E_NONFINITE    a number that F16 does not hold
 * GGUF_E_MISMATCH     dir has weights or a tokenizer that would stay, beside
 *                     those that are written
 * GGUF_E_EXIST, GGUF_E_IO, GGUF_E_NOSPACE, GGUF_E_CANCELLED, GGUF_E_NOMEM,
 * GGUF_E_INVALID (params; dir is no folder; a file would be read and written:
 * paths.h), and the statuses of
 * gguf_file_open
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_folder_write(const char *path, const char *dir,
                  const struct gguf_folder_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
