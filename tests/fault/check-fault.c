/* SPDX-License-Identifier: MIT */
/* check-fault.c - each file call of each command that writes fails, or is its
 * last
 *
 *   check-fault [--log FILE] [NAME [FAULT [CALL]]]
 *
 * Each command runs once under a preloaded library (fault.c) that counts its
 * file calls. Then it runs once for each call and each fault, in a folder of
 * its own with other files beside it. After each run:
 *
 *   inputs are unchanged;
 *   each output is absent, old or complete;
 *   no other file was touched;
 *   the last message of the program agrees with the files;
 *   after a kill, the same command succeeds.
 *
 * By default a sample of calls is tried, with GGUF_TEST_LONG every call.
 *
 * NAME is a command, or part of its name. --log writes a line for each run:
 * command, fault, call, status, outputs (o: as before, n: complete, x:
 * neither), other files left, last message.
 */
#include "config.h"
#include "tests/fault/job.h"
#include "tests/tap.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum { MAX_TOLD = 8 };

static FILE *detail; /* --log */

/* -------------------------------------------------- files after a run --- */

/* Did the injected signal end the run? */
static bool was_killed(const struct program_run *r)
{
    return WIFSIGNALED(r->status) && job_calls->hits &&
           WTERMSIG(r->status) ==
               (job_calls->fault == FAULT_TERM ? SIGTERM : SIGKILL);
}

struct left {
    const struct job *j;
    const struct program_run *r;
    char outputs[JOB_OUTPUTS + 1]; /* a letter for each output: o, n, x */
    bool killed;                   /* the injected signal ended the run */
    unsigned n_new, n_old, n_torn, n_kept, n_temps, n_strange;
    char strange[FOLDER_NAME + 16]; /* name of the first other file that
                                     * changed, and its change */
};

/* Is this .NAME.PID-N.tmp of this process? */
static bool is_temporary(const char *name, const char *pid)
{
    size_t n = strlen(name);
    const char *p = strstr(name, pid);
    return name[0] == '.' && n > 4 && !strcmp(name + n - 4, ".tmp") && p &&
           p[-1] == '.' && p[strlen(pid)] == '-';
}

static void note_thing(void *user, const char *name, const char *what)
{
    struct left *l = user;
    if (!strcmp(what, "is new")) {
        for (size_t i = 0; i < l->j->n_outputs; i++)
            if (!strcmp(l->j->outputs[i].name, name))
                return;
        if (job_has_word(l->j->c->keeps, name)) {
            l->n_kept++;
            return;
        }
        if (is_temporary(name, l->r->pid)) {
            l->n_temps++;
            return;
        }
    }
    if (!l->n_strange++)
        snprintf(l->strange, sizeof l->strange, "%s %s", name, what);
}

/* The next character. A number counts as one '0': numbers may differ. */
static int next_of(const char **p, const char *end)
{
    const char *begin = *p;
    while (*p < end && strchr("0123456789.+-e", **p) && **p)
        ++*p;
    if (*p > begin)
        return '0';
    return *p < end ? (unsigned char)*(*p)++ : -1;
}

static bool equal_but_numbers(const struct bytes *a, const struct bytes *b)
{
    const char *p = a->data, *q = b->data;
    while (p && q) {
        int c = next_of(&p, a->data + a->size);
        if (c != next_of(&q, b->data + b->size))
            return false;
        if (c < 0)
            return true;
    }
    return false;
}

/* Does the command's own check accept the output? */
static bool is_good(const struct command *c)
{
    static const char *const none[] = { NULL };
    struct program_run r;
    program_run(&r, "folder", c->check, "", none);
    const bool good = r.rc == 0;
    program_run_free(&r);
    return good;
}

static bool is_complete(const struct job *j, const struct output *o,
                        const struct bytes *b)
{
    if (o->varies && j->c->check)
        return is_good(j->c);
    return o->varies ? equal_but_numbers(b, &o->complete)
                     : bytes_equal(b, &o->complete);
}

/* Is it the old file itself, not a copy? After an edit in place it is, with
 * another time. */
static bool is_the_same(const struct job *j, const struct output *o,
                        const struct stat *s)
{
    const struct entry *e = folder_find(&j->folder, o->name);
    return !e || (e->was.st_ino == s->st_ino && e->was.st_mode == s->st_mode &&
                  ((j->c->flags & COMMAND_IN_PLACE) ||
                   (e->was.st_mtim.tv_sec == s->st_mtim.tv_sec &&
                    e->was.st_mtim.tv_nsec == s->st_mtim.tv_nsec)));
}

static char state_of(const struct job *j, const struct output *o)
{
    struct stat s;
    struct bytes b = bytes_of(job_place(o->name));
    bool absent = lstat(job_place(o->name), &s) != 0;
    bool old = absent ? !o->old.data
                      : bytes_equal(&b, &o->old) && is_the_same(j, o, &s);
    bool new = absent ? !o->complete.data
                      : is_complete(j, o, &b) && s.st_mode == o->mode;
    free(b.data);
    return old ? 'o' : new ? 'n' : 'x';
}

static void look_at_run(struct left *l, const struct job *j,
                        const struct program_run *r)
{
    *l = (struct left){ .j = j, .r = r, .killed = was_killed(r) };
    folder_look(&j->folder, note_thing, l);
    for (size_t i = 0; i < j->n_outputs; i++) {
        char s = state_of(j, &j->outputs[i]);
        l->outputs[i] = s;
        l->n_old += s == 'o';
        l->n_new += s == 'n';
        l->n_torn += s == 'x';
    }
}

/* Is every output complete? An output that the run does not change is complete
 * and old. */
static bool is_whole(const struct job *j, const struct left *l)
{
    for (size_t i = 0; i < j->n_outputs; i++) {
        const struct output *o = &j->outputs[i];
        bool same = o->old.data ? bytes_equal(&o->old, &o->complete)
                                : !o->complete.data;
        if (l->outputs[i] != 'n' && !same)
            return false;
    }
    return true;
}

/* Are all outputs that exist complete, except those that the command deletes?
 */
static bool is_made(const struct job *j, const struct left *l)
{
    bool made = true;
    for (size_t i = 0; i < j->n_outputs; i++)
        made &= !j->outputs[i].complete.data || l->outputs[i] == 'n';
    return made;
}

/* ------------------------------------------------------------ verdicts --- */

static const struct kind {
    const char *name;
    enum fault fault;
    int error;
} kinds[] = {
    { "killed before", FAULT_KILL_BEFORE, 0 },
    { "killed within", FAULT_KILL_HALF, 0 },
    { "killed after", FAULT_KILL_AFTER, 0 },
    { "SIGTERM", FAULT_TERM, 0 },
    { "ENOSPC", FAULT_ERROR, ENOSPC },
    { "EIO", FAULT_ERROR, EIO },
    { "EINTR", FAULT_ERROR, EINTR },
    { "half of it", FAULT_SHORT, 0 },
    { "full from then on", FAULT_FULL, 0 },
    { "dead from then on", FAULT_DEAD, 0 },
};

struct tally {
    unsigned runs, done, failed, killed, bad;
};

static bool removes_file(const char *call)
{
    return !strcmp(call, "unlink") || !strcmp(call, "remove");
}

/* Is a file gone that the command deletes, before the outputs are complete? */
static bool deleted_early(const struct job *j, const struct left *l)
{
    bool gone = false;
    for (size_t i = 0; i < j->n_outputs; i++)
        gone |= !j->outputs[i].complete.data && l->outputs[i] == 'n';
    return (j->c->flags & COMMAND_DELETES) && gone && !is_made(j, l);
}

/* Judge a run by its status, messages and files. NULL: all is well. */
static const char *judge_run(const struct job *j, const struct program_run *r,
                             const struct left *l, const struct kind *k,
                             const struct fault_call *call)
{
    bool killed = l->killed && k->fault != FAULT_TERM;
    /* a file that the run could not remove may stay */
    bool stuck = k->fault == FAULT_DEAD ||
                 (k->error && (removes_file(call->name) ||
                               job_has_word(j->c->keeps, call->path)));
    bool journal = (j->c->flags & COMMAND_IN_PLACE) && job_has(JOB_JOURNAL);
    size_t tool = strcspn(j->c->args, " ");
    if (l->n_strange)
        return l->strange;
    if (l->n_torn > journal)
        return "an output is neither old nor complete";
    if (deleted_early(j, l))
        return "an input is deleted before the output is there";
    if (killed)
        return NULL;
    if (!l->killed && r->rc != 0 && r->rc != 1)
        return "a crash, or a hang";
    if (l->n_temps && !stuck)
        return "a temporary is left";
    if (r->rc == 0 && !is_whole(j, l) && j->whole.rc == 0)
        return "status 0, and not complete";
    if (r->rc == 0 && l->n_kept > j->whole_kept && !stuck)
        return "status 0, and something is left";
    if (r->rc == 0 && !j->out_varies && !bytes_equal(&r->out, &j->whole.out))
        return "status 0, and other standard output";
    if (r->rc == 1 &&
        (!r->err.data || strncmp(r->last, j->c->args, tool) != 0))
        return "it failed without a word";
    if (r->rc == 1 && k->error && !bytes_equal(&r->err, &j->whole.err) &&
        !strstr(r->err.data, strerror(k->error)))
        return "it does not say why it failed";
    if (r->rc != 0 && (j->c->flags & COMMAND_SET) && l->n_old && l->n_new &&
        !stuck)
        return "some of a set are new";
    return NULL;
}

static const char *status_text(const struct program_run *r)
{
    static char text[16];
    if (r->rc >= 0)
        snprintf(text, sizeof text, "%d", r->rc);
    else
        snprintf(text, sizeof text, "SIG%d", WTERMSIG(r->status));
    return text;
}

static void tell_fault(FILE *f, const char *before, const struct job *j,
                       const struct program_run *r, const struct left *l,
                       const struct kind *k, uint32_t at,
                       const struct fault_call *c, const char *why)
{
    fprintf(f, "%s%s|%s|%u %s %s|%s|%s%s%s%s|%s|%s\n", before, j->c->name,
            k->name, at, c->name, c->path, status_text(r), l->outputs,
            l->n_kept ? " kept" : "", l->n_temps ? " temporary" : "",
            l->n_strange ? " strange" : "", r->last, why ? why : "");
}

/* After a kill or a failure, the same command must succeed. If all is complete
 * already, it may need --force. */
static const char *run_again(const struct job *j,
                             const struct program_run *before)
{
    static char why[300];
    struct program_run r;
    struct left l;
    if (j->whole.rc != 0)
        return NULL;
    job_run(&r, j->c->args, "", FAULT_NONE, 0, 0);
    if (r.rc == 1 && strstr(r.last, "(--force replaces it)")) {
        program_run_free(&r);
        job_run(&r, j->c->args, "--force", FAULT_NONE, 0, 0);
    }
    snprintf(why, sizeof why, "%s", r.last);
    struct program_run first = r;
    memcpy(first.pid, before->pid, sizeof first.pid);
    look_at_run(&l, j, &first);
    bool good = r.rc == 0 && is_whole(j, &l) && l.n_kept <= j->whole_kept &&
                !l.n_strange;
    /* the run has deleted its inputs */
    bool gone = (j->c->flags & COMMAND_DELETES) && is_made(j, &l);
    program_run_free(&r);
    if (good || gone)
        return NULL;
    if (l.n_strange)
        return "the next run: something else is left";
    if (l.n_kept > j->whole_kept)
        return "the next run leaves a journal";
    return *why ? why : "the next run is not complete";
}

static void try_one(struct job *j, const struct kind *k, uint32_t at,
                    struct tally *t)
{
    struct program_run r;
    struct left l;
    if ((j->c->flags & COMMAND_TORN) || !folder_is_untouched(&j->folder))
        job_prepare(j);
    job_run(&r, j->c->args, "", k->fault, at, k->error);
    look_at_run(&l, j, &r);
    if (job_calls->hits) { /* 0: the run made fewer calls than the first one */
        struct fault_call call = job_calls->calls[at - 1];
        const char *why = judge_run(j, &r, &l, k, &call);
        if (!why && (l.killed || l.n_kept))
            why = run_again(j, &r);
        t->runs++;
        t->done += r.rc == 0;
        t->failed += r.rc > 0;
        t->killed += l.killed;
        if (why && t->bad++ < MAX_TOLD)
            tell_fault(stdout, "# ", j, &r, &l, k, at, &call, why);
        if (detail)
            tell_fault(detail, "", j, &r, &l, k, at, &call, why);
    }
    program_run_free(&r);
}

/* ----------------------------------------------------------- the tests --- */

/* Can this fault happen at this call? */
static bool applies_to(const struct kind *k, const struct fault_call *c)
{
    switch (k->fault) {
    case FAULT_FULL: return c->kind & FAULT_ROOM;
    case FAULT_DEAD: return c->kind & FAULT_CHANGES;
    case FAULT_SHORT:
    case FAULT_KILL_HALF: return c->kind & FAULT_PARTS;
    default: return true;
    }
}

/* Try a fault at one in one_in of the calls that it applies to. */
static void try_kind(struct job *j, const struct kind *k, unsigned one_in,
                     uint32_t only)
{
    struct tally t = { 0 };
    static unsigned turn;
    for (uint32_t i = 1; i <= j->n_calls; i++) {
        if (!applies_to(k, &j->calls[i - 1]) || (only && only != i))
            continue;
        if (only || turn++ % one_in == 0)
            try_one(j, k, i, &t);
    }
    if (t.runs)
        ok(!t.bad, "%s: %s: %u of %u calls: done %u, failed %u, killed %u",
           j->c->name, k->name, t.runs, j->n_calls, t.done, t.failed,
           t.killed);
}

static void try_command(struct job *j, const struct command *c, int argc,
                        char **argv, unsigned one_in)
{
    if (!job_learn(j, c)) {
        skip("%s: cannot be had here", c->name);
        return;
    }
    ok((c->flags & COMMAND_REFUSED) ? j->whole.rc == 1 : j->whole.rc == 0,
       "%s: without a fault: status %d, %u calls%s%s", c->name, j->whole.rc,
       j->n_calls, *j->whole.last ? ": " : "", j->whole.last);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (argc < 3 || !strcmp(argv[2], kinds[k].name))
            try_kind(j, &kinds[k], one_in,
                     argc > 3 ? (uint32_t)atoi(argv[3]) : 0);
}

int main(int argc, char **argv)
{
    static struct job j;
    const char *more = getenv("GGUF_TEST_LONG");
    if (argc > 2 && !strcmp(argv[1], "--log")) {
        detail = fopen(argv[2], "w");
        argc -= 2;
        argv += 2;
    }
    unsigned one_in = argc > 1 || (more && *more) ? 1 : 48;
    bool here = program_begin("check-fault");
    if (!here || !job_begin()) {
        skip("no library can be preloaded here");
        if (here)
            program_end();
        return done_testing();
    }
    for (const struct command *c = commands; c->name; c++)
        if (argc < 2 || strstr(c->name, argv[1])) {
            try_command(&j, c, argc, argv, one_in);
            job_forget(&j);
        }
    program_end();
    return done_testing();
}
