/* SPDX-License-Identifier: MIT */
/* check-template.c - chat templates of a folder, and on the way back
 *
 * The keys are those that llama.cpp's converter writes (SpecialVocab of
 * gguf-py/gguf/vocab.py, add_chat_template of gguf_writer.py).
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/llama.h"
#include "tests/convert/roundtrip.h"
#include "tests/convert/notes.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <sys/stat.h>
#include <unistd.h>

#define MORE "additional_chat_templates"

static char top[100];
static struct folder folder, more;

/* A folder without a template. */
static void begin_folder(void)
{
    char *dir = strdup(scratch_path(top, "hf"));
    folder_llama(&folder, dir, "");
    folder_weights(&folder, "F32", 1);
    folder_text(&folder, "tokenizer_config.json", "{}");
    free(dir);
}

static void add_more(const char *name, const char *text)
{
    folder_begin(&more, scratch_path(folder.dir, MORE));
    folder_text(&more, name, text);
}

static void end_folder(void)
{
    scratch_clean(folder.dir);
}

/* Print the template keys in the order of the file: "KEY=TEXT ..." after
 * tokenizer.chat_template, a list as "[NAME,NAME]". */
static void print_keys(const struct gguf_meta *m, char out[500])
{
    static const char prefix[] = "tokenizer.chat_template";
    struct gguf_kv_iter it;
    struct gguf_str s;
    size_t n = 0;
    *out = 0;
    for (size_t i = 0; i < gguf_meta_n_kv(m); i++) {
        const struct gguf_kv *kv = gguf_meta_kv(m, i);
        if (kv->key.size < sizeof prefix - 1 ||
            memcmp(kv->key.data, prefix, sizeof prefix - 1) != 0)
            continue;
        n += (size_t)sprintf(out + n, "%s%.*s=", n ? " " : "",
                             (int)(kv->key.size - sizeof prefix + 1),
                             kv->key.data + sizeof prefix - 1);
        if (gguf_kv_get_str(kv, &s, NULL) == GGUF_OK) {
            n += (size_t)sprintf(out + n, "%.*s", (int)s.size, s.data);
            continue;
        }
        gguf_kv_iter_init(&it, kv);
        for (char c = '['; gguf_kv_iter_next_str(&it, &s); c = ',')
            n += (size_t)sprintf(out + n, "%c%.*s", c, (int)s.size, s.data);
        n += (size_t)sprintf(out + n, "]");
    }
}

/* Check the keys that the folder gives, and a part of a note (NULL: none). */
static void check_templates(const char *what, const char *want,
                            const char *said)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    static struct notes notes;
    char got[500] = "";
    memset(&notes, 0, sizeof notes);
    p.note = (struct gguf_convert_note_callback){ notes_keep, &notes };
    gguf_error_clear(&e);
    const enum gguf_status st = gguf_convert_open(&c, folder.dir, &p, &e);
    if (c)
        print_keys(gguf_convert_meta(c), got);
    ok(st == GGUF_OK && !strcmp(got, want), "%s: %s, expected %s %s", what,
       got, want, e.message);
    ok(said ? strstr(notes.text, said) != NULL : !*notes.text, "%s: said: %s",
       what, notes.text);
    gguf_convert_close(c);
}

static void check_refused(const char *why)
{
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, NULL, &e) != GGUF_OK &&
           strstr(e.message, why),
       "refused: %s", e.message);
    gguf_convert_close(c);
    end_folder();
}

/* The file becomes a folder again, which becomes the same file. */
static void check_back(void)
{
    struct gguf_error e;
    char *out = strdup(scratch_path(top, "out.gguf"));
    gguf_error_clear(&e);
    ok(folder_convert(folder.dir, out, NULL, &e) == GGUF_OK, "a file %s",
       e.message);
    ok(folder_roundtrip(out, "hf", scratch_path(top, "back"), &e),
       "and the same again %s", e.message);
    free(out);
    end_folder();
}

#define CONFIG(TEXT) folder_text(&folder, "tokenizer_config.json", TEXT)

static void check_places(void)
{
    begin_folder();
    check_templates("no template", "", NULL);
    folder_text(&folder, "chat_template.json", "{\"chat_template\":\"j\"}");
    check_templates("chat_template.json", "=j", NULL);
    folder_text(&folder, "chat_template.json",
                "{\"chat_template\":[{\"name\":\"x\",\"template\":\"1\"}]}");
    check_templates("a list in it, without a default", ".x=1 s=[x]", NULL);
    folder_text(&folder, "chat_template.json", "{\"chat_template\":\"a\"}");
    folder_text(&folder, "chat_template.jinja", "a");
    check_templates("chat_template.jinja", "=a", NULL);
    folder_text(&folder, "chat_template.json", "{\"chat_template\":\"j\"}");
    check_templates(
        "two that differ", "=a",
        "chat_template.json: the chat template 'default' differs from that "
        "in chat_template.jinja, which is taken");
    unlink(scratch_path(folder.dir, "chat_template.json"));
    CONFIG("{\"chat_template\":\"c\"}");
    check_templates("the tokenizer's before the file's", "=c",
                    "differs from that in "
                    "tokenizer_config.json");
    CONFIG("{\"chat_template\":null}");
    check_templates("null is none", "=a", NULL);
    add_more("rag.jinja", "r");
    add_more("b-c d.jinja", "b");
    add_more("notes.txt", "n");
    check_templates("named files", ".b_c_d=b .rag=r s=[b_c_d,rag] =a", NULL);
    /* folders on a server are not listed: published names are tried */
    unlink(scratch_path(more.dir, "b-c d.jinja"));
    check_back();
    begin_folder();
    CONFIG("{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"t\"},"
           "{\"name\":\"default\",\"template\":\"d\"},{\"name\":\"rag\","
           "\"template\":\"r\"}]}");
    check_templates("a list", ".tool_use=t .rag=r s=[tool_use,rag] =d", NULL);
    check_back();
}

static void check_faults(void)
{
    begin_folder();
    folder_text(&folder, "chat_template.jinja", " \n");
    check_templates("an empty one", "",
                    "chat_template.jinja: the chat template "
                    "'default' is empty: left out");
    CONFIG("{\"chat_template\":7}");
    check_templates("a number", "", "is neither a text nor a list: left out");
    CONFIG("{\"chat_template\":[{\"name\":\"x\"},{\"name\":\"y\",\"template\":"
           "\"2\"}]}");
    check_templates(
        "a name without a template", ".y=2 s=[y]",
        "element 0 of \"chat_template\" has no name or no template");
    end_folder();
    begin_folder();
    folder_text(&folder, "chat_template.json", "{\"x\":1}");
    check_templates("no member", "",
                    "chat_template.json: there is no \"chat_template\"");
    folder_text(&folder, "chat_template.json", "{");
    check_refused("chat_template.json: JSON");
    begin_folder();
    folder_text(&folder, "chat_template.jinja", "\xff");
    check_refused("chat_template.jinja is not UTF-8");
    begin_folder();
    add_more("x.jinja", "\xff");
    check_refused(MORE "/x.jinja is not UTF-8");
    begin_folder();
    add_more("y", "");
    if (symlink("nowhere", scratch_path(more.dir, "x.jinja")) != 0)
        exit(99);
    check_refused(MORE "/x.jinja: is a link to a file that is not there");
}

int main(void)
{
    snprintf(top, sizeof top, "check-template.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    check_places();
    check_faults();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
