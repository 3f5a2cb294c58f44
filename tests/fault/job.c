/* SPDX-License-Identifier: MIT */
/* job.c - a command under test: its files, its outputs, its file calls */
#include "config.h"
#include "tests/fault/job.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_SEEDS = 64 };

#define LIBRARY "tests/fault/.libs/fault.so"

struct fault_log *job_calls;

/* --------------------------------------------------------------- seeds --- */

static struct seed {
    char name[FOLDER_NAME];
    struct bytes bytes;
} seeds[MAX_SEEDS];

static const struct bytes *seed_bytes(const char *name)
{
    struct seed *s = seeds;
    while (s->name[0] && strcmp(s->name, name))
        s++;
    if (!s->name[0]) {
        char path[FOLDER_NAME + 8];
        snprintf(s->name, sizeof s->name, "%s", name);
        snprintf(path, sizeof path, "seeds/%.*s", FOLDER_NAME, s->name);
        s->bytes = bytes_of(program_place(path));
    }
    if (!s->bytes.data || s == seeds + MAX_SEEDS - 1) {
        printf("# no seed %s\n", name);
        exit(99);
    }
    return &s->bytes;
}

/* ------------------------------------------------------------- one run --- */

void job_run(struct program_run *r, const char *args, const char *more,
             enum fault fault, uint32_t at, int error)
{
    static char library[PROGRAM_PATH], count[PROGRAM_PATH];
    static const char *const env[] = { "LD_PRELOAD", library, "GGUF_FAULT",
                                       count, NULL };
    strcpy(library, program_built(LIBRARY));
    strcpy(count, program_place("calls"));
    job_calls->fault = fault;
    job_calls->at = at;
    job_calls->error = error;
    job_calls->here = job_calls->hits = job_calls->n_calls = 0;
    /* so that opening the pipe for writing does not wait for a reader */
    int pipe_end =
        open(program_place("folder/pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    program_run(r, "folder", args, more, env);
    if (pipe_end >= 0)
        close(pipe_end);
}

/* ----------------------------------------------------------- a command --- */

bool job_has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = n ? list : NULL; p && (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' '))
            return true;
    return false;
}

static void add_files(struct folder *f, const char *list, bool output)
{
    char words[1024], *argv[PROGRAM_ARGS];
    snprintf(words, sizeof words, "%s", list ? list : "");
    program_split(words, argv);
    for (char **w = argv; *w; w++) {
        char *as = strchr(*w, '=');
        if (as)
            *as++ = '\0';
        folder_add(f, as ? as : *w, seed_bytes(*w), output ? 0600 : 0644,
                   output);
    }
}

/* Add files with names near those that tools use. */
static void add_strangers(struct folder *f)
{
    static const char *const names[] = { ".out.gguf.1-0.tmp",
                                         "out.gguf.tmp",
                                         "out.gguf.bak",
                                         "out",
                                         "out.gguf.resume~",
                                         "out.gguf.resume-data.old",
                                         "r.json.tmp",
                                         "out-00001-of-00009.gguf",
                                         "out-00004-of-00004.gguf",
                                         "in.gguf.resume",
                                         ".x.gguf.edit-journal.1-0.tmp",
                                         "x.gguf.edit-journal2" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        folder_add(f, names[i], seed_bytes("text"), i % 2 ? 0600 : 0444,
                   false);
    folder_add_thing(f, "way.gguf", A_LINK, "x.gguf");
    folder_add_thing(f, "b.gguf.link", A_LINK, "b.gguf");
    folder_add_thing(f, "nowhere", A_LINK, "not/there");
    folder_add_thing(f, "pipe", A_PIPE, NULL);
    folder_add_thing(f, "out.d", A_FOLDER, NULL);
    folder_add_thing(f, "bak.link", A_HARD_LINK, "out.gguf.bak");
    if (folder_find(f, "out.gguf"))
        folder_add_thing(f, "other.name", A_HARD_LINK, "out.gguf");
}

const char *job_place(const char *name)
{
    char path[FOLDER_NAME + 8];
    snprintf(path, sizeof path, "folder/%.*s", FOLDER_NAME, name);
    return program_place(path);
}

bool job_has(const char *name)
{
    struct stat s;
    return lstat(job_place(name), &s) == 0;
}

/* Number of the call with which an edit in place writes the header; 0: none. */
static uint32_t find_header(void)
{
    for (uint32_t i = 0; i < job_calls->n_calls && i < FAULT_MAX_CALLS; i++) {
        const char *p = job_calls->calls[i].path;
        size_t n = strlen(p);
        if (!strncmp(job_calls->calls[i].name, "pwrite", 6) && n >= 6 &&
            !strcmp(p + n - 6, "x.gguf"))
            return i + 1;
    }
    return 0;
}

bool job_prepare(struct job *j)
{
    static const char edit[] = /* near the start and the end of the header */
        "gguf-edit --in-place --set llama.context_length=1 "
        "--set test.more.19=1 x.gguf";
    struct program_run r;
    folder_put(&j->folder);
    if (!(j->c->flags & COMMAND_TORN))
        return true;
    job_run(&r, edit, "", FAULT_NONE, 0, 0);
    program_run_free(&r);
    uint32_t at = find_header();
    folder_put(&j->folder);
    job_run(&r, edit, "", FAULT_KILL_HALF, at, 0);
    program_run_free(&r);
    return at && job_has(JOB_JOURNAL);
}

static struct output *output_of(struct job *j, const char *name)
{
    for (size_t i = 0; i < j->n_outputs; i++)
        if (!strcmp(j->outputs[i].name, name))
            return &j->outputs[i];
    if (j->n_outputs == JOB_OUTPUTS)
        exit(99);
    struct output *o = &j->outputs[j->n_outputs++];
    snprintf(o->name, sizeof o->name, "%s", name);
    return o;
}

static void learn_new(void *user, const char *name, const char *what)
{
    struct job *j = user;
    if (strcmp(what, "is new") != 0)
        ok(0, "%s: without a fault: %s %s", j->c->name, name, what);
    else if (job_has_word(j->c->keeps, name))
        j->whole_kept++;
    else
        output_of(j, name);
}

/* Run the command, and record its outputs and its file calls. */
static void learn_run(struct job *j)
{
    struct stat s;
    job_run(&j->whole, j->c->args, "", FAULT_NONE, 0, 0);
    folder_look(&j->folder, learn_new, j);
    for (size_t i = 0; i < j->n_outputs; i++) {
        struct output *o = &j->outputs[i];
        o->complete = bytes_of(job_place(o->name));
        o->mode = lstat(job_place(o->name), &s) ? 0 : s.st_mode;
    }
    uint32_t n = job_calls->n_calls;
    j->n_calls = n < FAULT_MAX_CALLS ? n : FAULT_MAX_CALLS;
    j->calls = malloc(sizeof *j->calls * (j->n_calls + 1));
    memcpy(j->calls, job_calls->calls, sizeof *j->calls * j->n_calls);
}

/* Run it again, and record the outputs that vary. */
static void learn_again(struct job *j)
{
    struct program_run r;
    job_run(&r, j->c->args, "", FAULT_NONE, 0, 0);
    j->out_varies =
        (j->c->flags & COMMAND_TIMES) || !bytes_equal(&r.out, &j->whole.out);
    program_run_free(&r);
    for (size_t i = 0; i < j->n_outputs; i++) {
        struct output *o = &j->outputs[i];
        struct bytes b = bytes_of(job_place(o->name));
        o->varies = o->complete.data && !bytes_equal(&b, &o->complete);
        free(b.data);
    }
}

bool job_learn(struct job *j, const struct command *c)
{
    struct program_run r;
    *j = (struct job){ .c = c };
    j->folder.path = strdup(program_place("folder"));
    add_files(&j->folder, c->files, false);
    add_files(&j->folder, c->old, true);
    add_strangers(&j->folder);
    for (size_t i = 0; i < j->folder.n; i++)
        if (j->folder.e[i].output)
            output_of(j, j->folder.e[i].name)->old = *j->folder.e[i].bytes;
    if (!job_prepare(j))
        return false;
    if (c->flags & COMMAND_TORN) { /* a torn file counts as the content that
                                    * its journal restores */
        job_run(&r, "gguf-edit -q --recover x.gguf", "", FAULT_NONE, 0, 0);
        program_run_free(&r);
        output_of(j, "x.gguf")->old = bytes_of(job_place("x.gguf"));
        job_prepare(j);
    }
    learn_run(j);
    if (!job_prepare(j))
        return false;
    learn_again(j);
    return job_calls->here != 0;
}

void job_forget(struct job *j)
{
    for (size_t i = 0; i < j->n_outputs; i++) {
        free(j->outputs[i].complete.data);
        if ((j->c->flags & COMMAND_TORN) &&
            !strcmp(j->outputs[i].name, "x.gguf"))
            free(j->outputs[i].old.data);
    }
    program_run_free(&j->whole);
    free(j->calls);
    free((char *)j->folder.path);
}

bool job_begin(void)
{
    if (access(program_built(LIBRARY), R_OK) != 0)
        return false;
    int fd = open(program_place("calls"), O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, sizeof *job_calls))
        exit(99);
    void *p = mmap(NULL, sizeof *job_calls, PROT_READ | PROT_WRITE, MAP_SHARED,
                   fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        exit(99);
    job_calls = p;
    for (size_t i = 0; seed_commands[i]; i++)
        program_shell("seeds", seed_commands[i]);
    return true;
}
