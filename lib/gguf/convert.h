/* SPDX-License-Identifier: MIT */
/* convert.h - convert a Hugging Face folder to a GGUF file, and back
 *
 * A folder has config.json, the weights as safetensors, and a tokenizer
 * (tokenizer.model, tokenizer.json or vocab.txt). If present,
 * tokenizer_config.json, generation_config.json, modules.json and the texts
 * beside it (sentence-transformers), a chat template and the model card
 * README.md are read too. The calls, in order:
 *
 *  1. gguf_convert_open() reads the folder, without the weights, and plans the
 *     GGUF file: its metadata, and its tensors with their types.
 *  2. gguf_convert_n_tensors(), gguf_convert_tensor(), gguf_convert_meta() and
 *     gguf_convert_summary() show the plan.
 *  3. gguf_convert_create_job() makes a quantization job (quant.h), which
 *     writes the file in its own types or in others, in bounded memory.
 *  4. gguf_convert_close() closes the folder, after its jobs are destroyed.
 *
 *     gguf_convert_open(&c, "Qwen3-8B", NULL, &err);
 *     gguf_recipe_preset(&recipe, "Q4_K_M", NULL, &err);
 *     params.recipe = recipe;
 *     gguf_convert_create_job(&job, c, &params, &err);
 *     gguf_quant_run(job, "Qwen3-8B-Q4_K_M.gguf", NULL, &err);
 *
 * Own types: these are the types of the plan, which a job writes with the
 * recipe COPY. Vectors become F32, and so do other tensors that programs
 * require to be F32. Matrices keep the folder's type; 8-bit floats become BF16,
 * and 64-bit floats F32. Packed weights (GPTQ, AWQ, compressed-tensors;
 * quantization_config in config.json) get the type of their scales, F16 or
 * BF16; MXFP4 blocks are copied.
 *
 * Adapters: a folder with adapter_config.json is a LoRA adapter (PEFT), and
 * becomes a file for gguf_adapter_create(). params.base is the model that it
 * changes: config.json of a folder, or the metadata of a GGUF file, is read.
 *
 * Image and video models: a path that ends in .safetensors is a file with all
 * tensors of such a model. A folder of diffusers, or of one of its pipelines,
 * is such a model, too. Names of tensors tell its architecture. The output has
 * the keys that ComfyUI-GGUF reads, and no vocabulary.
 *
 * Remote folders: a path that params.opener accepts is a folder elsewhere. Each
 * of its files is opened as the path, "/" and its name; GGUF_E_NOTFOUND from
 * the opener means that the file does not exist. Weights are read while a job
 * needs them, and only the parts in use stay in memory. But a matrix whose new
 * rows have elements from all over the old matrix, such as a transposed one, is
 * in memory as a whole while it is written.
 *
 * Ownership: a pointer in params that is "borrowed" must be valid during the
 * call only, one that is "kept" until gguf_convert_close().
 *
 * Threads: one thread at a time may use a folder and the jobs made from it.
 */
#ifndef GGUF_CONVERT_H
#define GGUF_CONVERT_H

#include <gguf/meta.h>
#include <gguf/kv.h>
#include <gguf/paths.h>
#include <gguf/progress.h>
#include <gguf/quant.h>
#include <gguf/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_convert;

enum gguf_convert_note_kind {
    /* The decision loses nothing of the folder, except parts that no GGUF file
     * can hold. */
    GGUF_CONVERT_REMARK,
    /* The decision may make the file compute another function, or give other
     * tokens, than the folder. */
    GGUF_CONVERT_WARNING
};

/* Called with a decision that the conversion made and that no file of the
 * folder states. line describes it in one line of text, and is valid during the
 * call. */
typedef void gguf_convert_note_fn(void *user, enum gguf_convert_note_kind kind,
                                  const char *line);

/* A note function and its pointer. Later versions add no members to this
 * struct. */
struct gguf_convert_note_callback {
    gguf_convert_note_fn *fn; /* NULL: no reports */
    void *user;               /* passed to fn */
};

/* Is a folder a reranker or a language model? For the classes Qwen3ForCausalLM
 * and Qwen3VLForConditionalGeneration, which both kinds use. */
enum gguf_convert_reranker {
    GGUF_CONVERT_RERANKER_DETECT, /* decided by evidence in the folder */
    GGUF_CONVERT_RERANKER_YES,    /* a reranker */
    GGUF_CONVERT_RERANKER_NO      /* a language model */
};

struct gguf_convert_params {
    size_t struct_size; /* set by GGUF_CONVERT_PARAMS_INIT */
    const struct gguf_allocator *allocator; /* kept; NULL: malloc */
    const struct gguf_limits *limits; /* limits of tensors; borrowed; NULL:
                                       * defaults */
    const char *pre; /* value of tokenizer.ggml.pre; borrowed; NULL: recognised
                      * by the tokenizer's description */

    /* Perl regular expressions; borrowed. Tensors of the folder whose names
     * match one are left out. A note reports an expression that matches
     * nothing. */
    const char *const *ignore;
    size_t n_ignore; /* number of expressions */

    const char *base; /* model of an adapter: a folder or a GGUF file;
                       * borrowed; NULL: none */
    struct gguf_convert_note_callback note; /* called by gguf_convert_open() */

    /* Opens folders elsewhere (reader.h). Kept, together with the readers that
     * it makes, until gguf_convert_close(). NULL: folders of this machine. */
    const struct gguf_opener *opener;

    /* Include the matrices (dense layers) that a sentence-transformers folder
     * applies after pooling, for models for which llama.cpp's converter leaves
     * them out (Gemma 3). Without this option they are left out there, and a
     * note reports them. Other models always include them. */
    bool dense_modules;

    /* The folder may hold a part of a model: gguf_convert_create_job() then
     * does not verify the plan. Without this option it refuses a plan with
     * errors. */
    bool allow_incomplete;

    /* Leave out, with a note, the steps of tokenizer.json's normalizer that no
     * GGUF file can hold. Without it, gguf_convert_open() refuses such a
     * tokenizer. */
    bool ignore_normalizer;
    enum gguf_convert_reranker reranker; /* kind of an ambiguous Qwen3 */

    /* Convert the projector: the part of a multimodal model that sees or hears,
     * as the file that llama.cpp calls mmproj (general.architecture "clip").
     * Without this option the language model is converted. */
    bool projector;

    /* Class, or architecture, that conversion uses for a folder of an unknown
     * class; borrowed. The file gets that architecture. Tensors without a place
     * in it are an error, as usual. A note names the members of config.json
     * that were not read. NULL: the class that config.json names. */
    const char *as;
};
#define GGUF_CONVERT_PARAMS_INIT GGUF_INIT(struct gguf_convert_params)

/* Open a folder and plan the GGUF file that it becomes.
 *
 * out      Receives the folder. NULL after a failure.
 * path     Path of the folder.
 * params   How to convert it. NULL: the defaults.
 *
 * Close *out with gguf_convert_close(). Reading the header of a safetensors
 * file takes up to 1 KiB of memory per tensor. The message of a failure begins
 * with the name of the file that it is about.
 *
 * GGUF_E_NOTFOUND     A required file, or a key of config.json, is missing.
 * GGUF_E_ARCH         The class is not supported. The message names the classes
 *                     whose tensors have the most similar names.
 * GGUF_E_UNSUPPORTED  The tokenizer has an unknown kind, its pre-tokenizer is
 *                     not recognised, or no GGUF file can hold its normalizer.
 *                     The message describes the part that is not supported.
 * GGUF_E_TENSOR       Tensors of the folder have no name in GGUF files of the
 *                     architecture (the message lists them), or the parts of
 *                     one tensor do not fit each other in shape or type.
 * GGUF_E_VOCAB        The tokenizer is inconsistent.
 * GGUF_E_FORMAT, GGUF_E_TRUNCATED, GGUF_E_OVERFLOW, GGUF_E_LIMIT,
 * GGUF_E_DUPLICATE, GGUF_E_MISMATCH
 *                     A file is malformed.
 * GGUF_E_IO           A file cannot be read.
 * GGUF_E_NOMEM        Memory for the plan cannot be allocated.
 * GGUF_E_INVALID      params has n_ignore without ignore, or base for a folder
 *                     that is not an adapter. Or params->as is not a known
 *                     class or architecture, or the class of config.json is
 *                     known and another one.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_convert_open(struct gguf_convert **out, const char *path,
                  const struct gguf_convert_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Close a folder. NULL is ignored. Its jobs must be destroyed before.
 * Since: 0.1 */
GGUF_API void gguf_convert_close(struct gguf_convert *c);

/* ------------------------------------------------------------ the plan --- */

/* One tensor of the planned file. All pointers belong to the folder. Only the
 * library makes it; later versions may add members at its end. */
struct gguf_convert_tensor {
    const char *name; /* name in the GGUF file */
    unsigned n_dims;  /* number of dimensions */
    int64_t ne[4];    /* elements per dimension, fastest first */
    uint32_t dtype;   /* id of its own type */
    const char *from; /* tensor of the folder that it is made from; the first
                       * of several */
    size_t n_from;    /* number of tensors that it is made from */
    const char *how;  /* the change in words, such as "as it is" */
};

/* Number of tensors in the planned file. Since: 0.1 */
GGUF_API size_t gguf_convert_n_tensors(const struct gguf_convert *c);

/* Tensor i of the plan, in the order of the folder; NULL if i is out of range.
 * The result belongs to the folder. Since: 0.1 */
GGUF_API const struct gguf_convert_tensor *
gguf_convert_tensor(const struct gguf_convert *c, size_t i);

/* Name of a tensor of the folder from which tensor i of the plan is made.
 *
 * i     Number of the tensor in the plan.
 * no    Number of the source, 0 to n_from - 1.
 *
 * NULL if i or no is out of range. Belongs to the folder. Since: 0.1 */
GGUF_API const char *gguf_convert_source(const struct gguf_convert *c,
                                         size_t i, size_t no);

/* Number of tensors of the folder that are left out: those that models do not
 * need, such as tables that can be computed, and those that params.ignore
 * matched. Since: 0.1 */
GGUF_API size_t gguf_convert_n_omitted(const struct gguf_convert *c);

/* Name of tensor i that is left out; NULL if i is out of range. Belongs to the
 * folder. Since: 0.1 */
GGUF_API const char *gguf_convert_omitted(const struct gguf_convert *c,
                                          size_t i);

/* Kind of a folder. All pointers belong to the folder. Only the library makes
 * it; later versions may add members at its end. */
struct gguf_convert_summary {
    const char *kind;       /* "language model", "embedding model",
                             * "classifier", "reranker", "adapter",
                             * "encoder" or "projector" */
    const char *class_name; /* first of "architectures" in config.json, for an
                             * adapter in that of its model; text of the file,
                             * to be escaped before it is printed (text.h) */
    const char *reason;     /* evidence for the kind, such as "its class" or
                             * "modules.json"; to be escaped, too */
    size_t n_tokens_left;   /* added tokens that are left out because the
                             * embedding has no row for them */
    size_t n_projector; /* tensors of a projector that are left out and that
                             * gguf_convert_params.projector converts */
};

/* Kind of model that the folder was recognised as. Belongs to the folder.
 * Since: 0.1 */
GGUF_API const struct gguf_convert_summary *
gguf_convert_summary(const struct gguf_convert *c);

/* Metadata of the planned file. Belongs to the folder. Since: 0.1 */
GGUF_API const struct gguf_meta *
gguf_convert_meta(const struct gguf_convert *c);

/* Create a job that writes the planned file.
 *
 * out      Receives the job. NULL after a failure.
 * c        The folder. It must outlive the job.
 * params   How to quantize; recipe must be set (the preset COPY keeps the own
 *          types). allow_requantize is always on.
 *
 * Free *out with gguf_quant_destroy().
 *
 * GGUF_E_MISMATCH  The plan, with the keys of params->meta, is not a valid
 *                  model: the message is the first error of gguf_file_verify().
 *                  Adapters are not verified, nor is anything with
 *                  gguf_convert_params.allow_incomplete.
 * Other            The statuses of gguf_quant_create().
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_convert_create_job(struct gguf_quant **out, struct gguf_convert *c,
                        const struct gguf_quant_params *params,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------------ and back --- */

/* Called with a key of the file that the folder will not have, or will have
 * with another value. key is valid during the call. */
typedef void gguf_folder_note_fn(void *user, const char *key);

/* A note function and its pointer. Later versions add no members to this
 * struct. */
struct gguf_folder_note_callback {
    gguf_folder_note_fn *fn; /* NULL: no reports */
    void *user;              /* passed to fn */
};

struct gguf_folder_params {
    size_t struct_size; /* set by GGUF_FOLDER_PARAMS_INIT */
    const struct gguf_allocator *allocator; /* NULL: malloc */
    const struct gguf_limits *limits; /* limits of the input; NULL: defaults */

    /* Type of all tensors: F32, F16 or BF16. NULL: tensors of these three types
     * keep them, and all others become F16. */
    const struct gguf_dtype_info *dtype;
    uint64_t max_file_size; /* bytes of tensor data per file; 0: one file */
    bool force;             /* replace existing files, when all are complete */
    bool no_sync;           /* do not wait for the disk */
    struct gguf_progress_callback progress; /* unit: bytes of tensor data */
    struct gguf_folder_note_callback note;  /* keys that are lost or change */

    /* Opens inputs that are not files of this machine (reader.h); NULL:
     * none. */
    const struct gguf_opener *opener;
    /* Other files that the program uses. The call fails with GGUF_E_INVALID
     * rather than replace one (paths.h). NULL: none. */
    const struct gguf_paths *paths;
};
#define GGUF_FOLDER_PARAMS_INIT GGUF_INIT(struct gguf_folder_params)

/* Write a model as a folder that transformers loads.
 *
 * path     Path of a GGUF file, of any shard of a set, of a folder that holds
 *          one set, or the prefix of a set.
 * dir      The folder to write; created if it does not exist.
 * params   How to write it. NULL: the defaults.
 *
 * Writes config.json, model.safetensors (or several with their index), the
 * tokenizer, and tokenizer_config.json; also README.md and
 * generation_config.json, both from the file's general.* keys. Names and
 * weights are changed by the inverse of the conversion. Before anything is
 * written, the planned folder is converted to a plan of a GGUF file, without
 * weights. That plan must have the tensors of the file, with their names and
 * shapes.
 *
 * A projector (general.architecture "clip") becomes a folder with its tensors,
 * config.json with the settings of its towers, and preprocessor_config.json.
 * Such a folder has no language model.
 *
 * Files are written under temporary names, and all are renamed when the last
 * one is complete. A failure before that leaves no new file, and existing files
 * as they were. Memory is bounded.
 *
 * GGUF_E_ARCH         The architecture is not supported.
 * GGUF_E_TENSOR       No folder of this architecture has such a tensor.
 * GGUF_E_UNSUPPORTED  A type cannot be decoded, or the vocabulary cannot be
 *                     written; the class of a projector has no way back, and
 *                     the message says why.
 * GGUF_E_NONFINITE    A weight is too large for F16.
 * GGUF_E_MISMATCH     dir has other weights or tokenizer files, which this call
 *                     does not replace, even with force: they would remain
 *                     beside the new ones.
 * GGUF_E_EXIST        A file exists and force is not set.
 * GGUF_E_INVALID      dtype is not F32, F16 or BF16; dir is not a folder; a
 *                     file would be both read and written (paths.h).
 * GGUF_E_CANCELLED    The progress callback stopped the call.
 * GGUF_E_IO           A file cannot be read or written.
 * GGUF_E_NOSPACE      The disk is full.
 * GGUF_E_NOMEM        A buffer cannot be allocated.
 * Other               The statuses of gguf_file_open().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_folder_write(const char *path, const char *dir,
                  const struct gguf_folder_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
