/* SPDX-License-Identifier: MIT */
/* quant.h - making a model file of other tensor types, as a stream
 *
 * A job reads a GGUF file (or a set of split ones) and writes another in which
 * each tensor has the type that a recipe chose for it. Creating the job makes
 * the plan, which can be looked at and costs nothing; running it reads rows,
 * encodes them and writes them through a window of bounded memory, whatever
 * the size of model and tensors. Names and shapes are all it needs to know:
 * any architecture will do, or none.
 *
 *     struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
 *     gguf_recipe_preset(&recipe, "Q4_K_M", NULL, &err);
 *     p.recipe = recipe;
 *     gguf_quant_create(&job, "model-f16.gguf", &p, &err);
 *     gguf_quant_run(job, "model-q4km.gguf", NULL, &err);
 *     gguf_quant_destroy(job);
 *
 * The scale of an NVFP4 tensor (gguf-quants(7)) is multiplied into the weights
 * that are made from it, and is then not a tensor of the output; with compat
 * the scale stays a tensor and the weights are made without it, which is
 * equivalent for llama.cpp. With outer_scales, tensors that become NVFP4 get a
 * scale for each matrix: its largest weight divided by the largest value that
 * blocks can hold, so that their scales are used in full. The input is read
 * once more for that.
 *
 * The bytes written depend on the input and the params, not on the number of
 * threads, the instruction set or the window. A job is used by one thread at a
 * time.
 */
#ifndef GGUF_QUANT_H
#define GGUF_QUANT_H

#include <gguf/file.h>
#include <gguf/imatrix.h>
#include <gguf/paths.h>
#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/recipe.h>
#include <gguf/split.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_quant;

#define GGUF_DTYPE_NONE UINT32_MAX /* no type */

/* A type for the tensors whose name matches: a Perl regular expression of at
 * most 1000 bytes, searched anywhere in the name, letter case ignored. The
 * first match decides. An item of an array: it never grows. */
struct gguf_quant_override {
    const char *pattern;
    uint32_t dtype;
};

/* A LoRA adapter (adapter.h says what its file has). It never grows.
 *
 * Of each of its pairs the product is added to its tensor as that is read:
 * decoded, added in single precision (w + factor * sum, the sum in the order of
 * the rank, one adapter after another), encoded with importance data as any
 * other, a few rows at a time. A tensor that something is added to is never
 * copied: where the recipe leaves it its type it is encoded in that again,
 * which for a type that is quantized already needs allow_requantize. */
struct gguf_quant_lora {
    const struct gguf_file *file; /* kept */
    float scale;                  /* from -1e9 to 1e9; 0: not merged */
    const char *name; /* for quantize.lora.files, visible to all readers of the
                       * output; borrowed; NULL: "" */
};

/* What to do about a weight that is NaN or infinite, or larger than the type
 * that it gets can hold, of which gguf-quants(7) has a table: 65504 in F16,
 * 2688 in NVFP4 without a scale outside of its blocks, 5e5 to 3e8 in most
 * others. */
enum gguf_nonfinite {
    GGUF_NONFINITE_ERROR, /* end with GGUF_E_NONFINITE: tensor, row, column */
    GGUF_NONFINITE_ZERO,  /* count it and replace it by zero, also in float
                           * tensors that are copied; if it is too large for
                           * its block, the whole block */
    GGUF_NONFINITE_KEEP   /* count it and encode it as it is */
};

struct gguf_quant_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    const struct gguf_limits *limits;       /* of the input; NULL: defaults */
    const struct gguf_recipe *recipe;       /* kept; must be given */
    struct gguf_pool *pool;                 /* kept; NULL: no threads */
    const struct gguf_imatrix *imatrix;     /* kept; NULL: none */
    const char *imatrix_name; /* written as quantize.imatrix.file, visible to
                               * all readers of the file; kept; NULL: not
                               * recorded */
    const struct gguf_quant_override *overrides; /* borrowed */
    size_t n_overrides;
    uint32_t output_type;    /* for output.weight, or without one for the token
                              * embedding; GGUF_DTYPE_NONE */
    uint32_t embedding_type; /* for the token embedding; GGUF_DTYPE_NONE */
    int pure;                /* everything to the recipe's base type */
    int leave_output;        /* output.weight keeps its type */
    int allow_requantize;    /* from types that are quantized already */
    int compat; /* the bytes of llama-quantize, even its oddities */
    enum gguf_nonfinite nonfinite;
    const struct gguf_meta *meta; /* keys to set in the output; borrowed. Rules
                                   * see these values too. No split.* keys: the
                                   * files determine them. NULL: none */
    const uint32_t *prune; /* layers to leave out, borrowed: later ones move */
    size_t n_prune;        /* up, and so do per-layer arrays of the metadata:
                             * of the architecture's keys, or without one of
                             * those of the only key *.block_count */
    int keep_split;        /* as many files as the input, with its tensors;
                             * not together with max_file_size */
    uint64_t max_file_size; /* bytes of each output file; 0: one file */
    int outer_scales; /* tensors NAME.weight that become NVFP4 get NAME.scale
                       * beside them (gguf-quants(7)); not with compat */
    int measure; /* decode what was encoded, and fill gguf_quant_loss: takes 64
                  * bytes for each chunk of rows beyond max_memory, about 17 MB
                  * for 70 billion weights */
    uint64_t max_memory;        /* bytes of buffers; 0: 128 MiB */
    gguf_progress_fn *progress; /* bytes of input; NULL: none */
    void *progress_user;
    const struct gguf_quant_lora *loras; /* n_loras of them; borrowed */
    size_t n_loras;                      /* not with compat */
    const struct gguf_opener
        *opener; /* of inputs that are no files' (reader.h);
                                       * kept; NULL: none */
};
#define GGUF_QUANT_PARAMS_INIT                                                \
    {                                                                         \
        sizeof(struct gguf_quant_params), NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL, 0, GGUF_DTYPE_NONE, GGUF_DTYPE_NONE, 0, 0, 0, 0,            \
            GGUF_NONFINITE_ERROR, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL,   \
            NULL, 0, NULL                                                     \
    }

/* ------------------------------------------------------------ the plan --- */

/* Open the input, a file or a set of shards, as gguf_file_open does, and choose
 * a type for each tensor. The statuses of gguf_file_open, and:
 * GGUF_E_UNSUPPORTED  requantizing without allow_requantize; prune without
 *                     general.architecture, and several keys *.block_count
 * GGUF_E_NOTFOUND     a pattern that matches no tensor that can be quantized
 * GGUF_E_FORMAT       a pattern with a syntax error
 * GGUF_E_LIMIT        a pattern that is too long or takes too many steps to
 *                     search
 * GGUF_E_TENSOR       an NVFP4 tensor's scale is of another type or shape, or
 *                     not finite
 * GGUF_E_LIMIT        a tensor or the metadata alone exceed max_file_size
 * GGUF_E_MISMATCH     the importance data are of another model: they share no
 *                     name with the input (compat accepts that), or their
 *                     columns differ, except for token_embd.weight, where they
 *                     are ignored then
 * GGUF_E_MISMATCH     a lora is no adapter, or of another architecture
 * GGUF_E_TENSOR       a tensor of a lora is no half of a pair, or does not go
 *                     with the tensor that it is for, or there is none
 * GGUF_E_INVALID      params
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_create(struct gguf_quant **out, const char *path,
                  const struct gguf_quant_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* The same for an open input, which may also be one shard of several, lie in
 * memory or inside another file. It is kept, and may serve several jobs. A
 * change of the file on disk makes the run fail, or is not noticed.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_create_file(struct gguf_quant **out, const struct gguf_file *file,
                       const struct gguf_quant_params *params,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_quant_destroy(struct gguf_quant *q);

enum gguf_quant_reason {
    GGUF_REASON_NEVER_QUANTIZED, /* tensors of this kind are never quantized */
    GGUF_REASON_LEAVE_OUTPUT,    /* leave_output */
    GGUF_REASON_EMBEDDING_TYPE,  /* embedding_type */
    GGUF_REASON_OUTPUT_TYPE,     /* output_type */
    GGUF_REASON_OVERRIDE,        /* a pattern */
    GGUF_REASON_BASE,            /* the base type: pure, or no rule holds */
    GGUF_REASON_RULE,            /* a rule of the recipe */
    GGUF_REASON_TARGET,          /* gguf_quant_fit_size */
    /* at least Q8_0, for a table whose rows are only looked up; not with
     * compat, pure or a rule for its name */
    GGUF_REASON_LOOKUP_TABLE
};

/* What encoding did to a tensor: figures about the differences between the
 * weights read and the encoded weights. Sums are added in order: everything
 * but seconds is the same for any number of threads. Made by the library: it
 * may grow at its end. */
struct gguf_quant_loss {
    int measured;    /* 0: nothing was encoded, or measure was not asked for */
    double rms;      /* root of the mean square root of the mean square of the
                      * differences */
    double max;      /* the largest */
    double rms_in;   /* root of the mean square of the weights read */
    double weighted; /* as rms, weighted with the importance data; rms where
                      * there are none */
    double snr;      /* 20 log10(rms_in / rms), dB; infinite without a loss */
    double
        seconds; /* processor time of all threads: decode, encode, measure */
};

/* One tensor of the output. All it points to belongs to the job. Made by the
 * library: it may grow at its end. */
struct gguf_quant_tensor {
    const char *name; /* as in the file; gguf_text_escape to print it */
    unsigned n_dims;
    int64_t ne[GGUF_MAX_DIMS]; /* elements, fastest dimension first; 1 from
                                * n_dims on */
    uint64_t n_elements;
    uint32_t from, to; /* type ids */
    uint32_t wanted;   /* the id that was chosen; `to` differs from it if the
                         * rows are not a multiple of its blocks */
    uint64_t from_size, to_size; /* bytes */
    enum gguf_quant_reason why;
    const char *rule;  /* what decided, as a text of one line */
    int has_imatrix;   /* importance data for this tensor are used */
    int needs_imatrix; /* the type wants importance data, and there are none
                         * for this tensor */
    int bad_imatrix;   /* there are some, but of another shape: not used */
    int lacks_imatrix; /* importance data are given and would weigh its errors,
                         * but have no entry for it. Not set for the output
                         * matrix and token embeddings, which are seldom
                         * collected */
    uint64_t n_mended; /* columns whose importance was NaN, infinite, above
                         * 2^64 or negative (all columns if all were zero):
                         * replaced by the mean of the others, or by 1 */
    int copied;        /* bytes are copied, not encoded */
    uint64_t n_nonfinite; /* weights that are NaN or infinite, or would be in
                           * one of the outputs of run; first_nonfinite is the
                           * first one's element number, in row first_nonfinite
                           * / ne[0] */
    uint64_t first_nonfinite;
    double
        noise; /* for GGUF_REASON_TARGET: the noise it expects, see target.h */
    struct gguf_quant_loss loss; /* filled by run */
    int merged;                  /* products of loras are added to it */
};

/* In the order of the output. NULL if i is out of range. Since: 0.1 */
GGUF_API size_t gguf_quant_n_tensors(const struct gguf_quant *q);
GGUF_API const struct gguf_quant_tensor *
gguf_quant_tensor(const struct gguf_quant *q, size_t i);

struct gguf_quant_totals {
    size_t struct_size; /* the caller's: as much is filled in */
    uint64_t n_elements;
    uint64_t from_size, to_size; /* bytes of tensor data, without padding */
    uint64_t file_size;          /* bytes of the whole output, all files */
    uint64_t n_fallbacks;        /* tensors whose wanted type did not fit */
    uint64_t n_imatrix, n_needs_imatrix, n_bad_imatrix, n_mended; /* tensors */
    uint64_t n_lacks_imatrix;   /* tensors; of n_imatrix + n_lacks_imatrix */
    uint64_t n_imatrix_unknown; /* importance data that belong to no tensor of
                                 * the input */
    uint64_t n_nonfinite;       /* weights met so far by run */
    uint64_t n_kept;            /* tensors that the last run with resume found
                                  * complete */
    uint64_t n_left_out;        /* vectors NAME_norm.weight of loras, which are
                                 * not merged (gguf/adapter.h) */
};
#define GGUF_QUANT_TOTALS_INIT GGUF_INIT(struct gguf_quant_totals)
/* GGUF_E_INVALID (out). Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_totals(const struct gguf_quant *q, struct gguf_quant_totals *out,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------------- the run --- */

/* Called for each job, in order, when all files of the run are complete and on
 * disk, and none has its name yet: is what was written to be kept? output is
 * that of the job number, opened; borrowed. A status other than GGUF_OK ends
 * the run with that status, and with the message in err, which is never NULL:
 * no output gets its name. */
typedef enum gguf_status gguf_quant_check_fn(void *user, size_t job,
                                             const struct gguf_file *output,
                                             struct gguf_error *err);

struct gguf_quant_output {
    size_t struct_size;
    int force;   /* an existing regular file is replaced in the end */
    int no_sync; /* do not wait for the disk: for tests and scratch files */
    int resume;  /* keep a journal, and go on from it: see below */
    const struct gguf_paths *paths; /* the caller's other files: no file of the
                                     * run may be one of these. Borrowed; NULL:
                                     * none */
    gguf_quant_check_fn *check;     /* or NULL */
    void *check_user;
};
#define GGUF_QUANT_OUTPUT_INIT GGUF_INIT(struct gguf_quant_output)

/* Number of output files: more than one with keep_split or max_file_size,
 * whose paths then are PREFIX-NNNNN-of-NNNNN.gguf, where PREFIX is the path
 * given to run, without ".gguf". Since: 0.1 */
GGUF_API size_t gguf_quant_n_files(const struct gguf_quant *q);

/* Write the file. It grows under a temporary name and takes its own when it is
 * complete; a failure leaves no file, and an old one untouched. output may be
 * NULL. May be called again for another path.
 *
 * With resume, the file grows as PATH.resume-data, and PATH.resume notes each
 * tensor that is complete, with a digest of its bytes (XXH3, 128 bits). A run
 * that fails, is cancelled or killed leaves both. The next run with resume
 * checks that the journal belongs to the same plan (types, metadata,
 * importance data, version of the library, and of each input file: size, time
 * of the last change, inode, header, and 64 pieces of 4 KiB of its data),
 * reads back the noted tensors, keeps those whose digests are right and makes
 * the others. The result is, byte for byte, that of a single run, whatever
 * threads and memory either run had. gguf_quant_loss of tensors that are kept
 * is that of the run that made them. A job with several files has one journal,
 * and a PATH.resume-data for each file. A run that completes no tensor leaves
 * nothing. Files of these names that were not made by a run are refused and
 * stay; so do those of other users in a folder like /tmp, and any that have a
 * second name (a hard link).
 *
 * All files get their names at the end. If one cannot get its name, none does,
 * and replaced files are restored (where the file system has hard links).
 *
 * With check, the files are opened and looked at before they get their names.
 * One that is refused is gone, unless resume is set: then the next run would
 * keep what was made and ask again; gguf_quant_discard removes it.
 *
 * GGUF_E_EXIST        path is there, and force is not set
 * GGUF_E_MISMATCH     PATH.resume belongs to another plan, is not a journal,
 *                     or is refused as said above; the input has changed since
 *                     the job was created
 * GGUF_E_INVALID      two of the files to read and write are the same file
 *                     (paths.h); a tensor needs importance data
 * GGUF_E_UNSUPPORTED  a type that cannot be decoded or encoded
 * GGUF_E_NONFINITE    names tensor, row and column
 * GGUF_E_CANCELLED    the progress callback asked to stop. It is called after
 *                     each slice of rows, each write, and every few megabytes
 *                     while the disk is synced, and not again after that.
 *                     Without resume the system then frees the written blocks,
 *                     about a tenth of a second per gigabyte, when the last
 *                     process closes the file: a child forked in the callback
 *                     can take over this wait, as in the tools
 * GGUF_E_IO           also: with resume, another process runs this job
 * GGUF_E_NOSPACE, GGUF_E_NOMEM
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_run(struct gguf_quant *q, const char *path,
               const struct gguf_quant_output *output,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* Several jobs over the same input, which is read and decoded once: jobs[n]
 * must have been created from the same path, open file or set; paths[n]
 * differ. A job may leave out tensors that others have. Jobs with and without
 * compat cannot be combined if scales of NVFP4 are multiplied into weights
 * (GGUF_E_INVALID, before any file is touched). Pool, memory, progress and the
 * treatment of non-finite weights are those of the first job. After a failure
 * no output has its name.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_run_many(struct gguf_quant *const *jobs, const char *const *paths,
                    size_t n, const struct gguf_quant_output *output,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Remove what a run with resume that did not end left for path: PATH.resume,
 * and files ending in .resume-data in its folder that this journal notes. *n:
 * how many files went. What is not of this user or not a journal, or is at work
 * in another process, stays: *n is 0. For after a run without resume, whose
 * output is complete. GGUF_E_IO, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_discard(const char *path, size_t *n,
                   struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
