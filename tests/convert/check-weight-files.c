/* SPDX-License-Identifier: MIT */
/* check-weight-files.c - folders with several sets of weights
 *
 * transformers reads model.safetensors if it exists, otherwise the files of
 * the index (_get_resolved_checkpoint_files, modeling_utils.py of 5.0). Here
 * each set has another type of numbers, so that the type shows which set was
 * read.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/llama.h"
#include "tests/convert/notes.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

static char top[100];
static struct folder folder;

static void begin_folder(void)
{
    folder_llama(&folder, scratch_path(top, "hf"), "");
}

static void drop_file(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "hf/%s", name);
    unlink(scratch_path(top, path));
}

/* Check the type of the embedding, and a part of a note; NULL: no note. */
static void check_files(const char *what, uint32_t dtype, const char *said)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    static struct notes notes;
    uint32_t got = UINT32_MAX;
    memset(&notes, 0, sizeof notes);
    p.note = (struct gguf_convert_note_callback){ notes_keep, &notes };
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, &p, &e) == GGUF_OK, "%s: %s", what,
       e.message);
    for (size_t i = 0; c && i < gguf_convert_n_tensors(c); i++)
        if (!strcmp(gguf_convert_tensor(c, i)->name, "token_embd.weight"))
            got = gguf_convert_tensor(c, i)->dtype;
    ok(got == dtype, "%s: type %u", what, (unsigned)got);
    ok(said ? strstr(notes.text, said) != NULL : !*notes.text, "%s: said: %s",
       what, notes.text);
    gguf_convert_close(c);
    scratch_clean(folder.dir);
}

int main(void)
{
    static const char *const second = "model-00002-of-00002.safetensors";
    snprintf(top, sizeof top, "check-weight-files.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    begin_folder();
    folder_weights(&folder, "F32", 2);
    folder_weights(&folder, "BF16", 1);
    check_files(
        "an index beside model.safetensors", GGUF_DTYPE_BF16,
        "model.safetensors is read, as by transformers, and not the files "
        "that model.safetensors.index.json names");
    begin_folder();
    folder_weights(&folder, "F32", 2);
    folder_weights(&folder, "BF16", 1);
    drop_file("model-00001-of-00002.safetensors");
    drop_file(second);
    check_files("an index of files that are gone", GGUF_DTYPE_BF16,
                "and not the files that");
    begin_folder();
    folder_weights(&folder, "BF16", 1);
    folder_text(&folder, "model.safetensors.index.json",
                "{\"weight_map\":{\"lm_head.weight\":\"model.safetensors\"}}");
    check_files("an index of model.safetensors itself", GGUF_DTYPE_BF16, NULL);
    begin_folder();
    folder_weights(&folder, "BF16", 3);
    folder_weights(&folder, "F32", 2);
    check_files(
        "shards of an earlier save", GGUF_DTYPE_F32,
        "'model-00001-of-00003.safetensors' and 2 more: not read, because "
        "model.safetensors.index.json does not name them");
    begin_folder();
    folder_weights(&folder, "F32", 2);
    folder_weights(&folder, "BF16", 1);
    drop_file("model.safetensors.index.json");
    check_files("shards without an index", GGUF_DTYPE_BF16,
                "and not 'model-00001-of-00002.safetensors' and 1 more");
    begin_folder();
    folder_weights(&folder, "F32", 2);
    check_files("an index alone", GGUF_DTYPE_F32, NULL);
    rmdir(folder.dir);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
