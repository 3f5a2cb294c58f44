/* SPDX-License-Identifier: MIT */
/* check-task-files.c - malformed files of tasks are refused at the right byte
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/model.h"
#include "gguf/task.h"
#include "tests/tap.h"

static void check_refused(void)
{
    static const struct {
        enum gguf_task_kind kind;
        const char *file;
        enum gguf_status st;
        uint64_t off;
        const char *what;
    } cases[] = {
        { GGUF_TASK_HELLASWAG, "", GGUF_E_NOTFOUND, 0,
          "the file has no task" },
        { GGUF_TASK_HELLASWAG, "a\n0\nb\nc\nd\ne\nf\n1\n", GGUF_E_TRUNCATED,
          12, "line 7: a task of 6 lines has 2" },
        { GGUF_TASK_HELLASWAG, "a\n4\nb\nc\nd\ne\n", GGUF_E_FORMAT, 2,
          "line 2 is not the number of an ending" },
        { GGUF_TASK_HELLASWAG, "a\n0\nb\n\nd\ne\n", GGUF_E_FORMAT, 0,
          "line 1: answer 1 is empty" },
        { GGUF_TASK_HELLASWAG, "\n0\nb\nc\nd\ne\n", GGUF_E_FORMAT, 0,
          "line 1: the text before the answers is empty" },
        { GGUF_TASK_WINOGRANDE, "0,a _ b,c,d,1\n1,a b,c,d,1\n", GGUF_E_FORMAT,
          14, "line 2: the sentence has not one blank" },
        { GGUF_TASK_WINOGRANDE, "0,a _ b _,c,d,1\n", GGUF_E_FORMAT, 0,
          "not one blank" },
        { GGUF_TASK_WINOGRANDE, "0,a b _,c,d,1\n", GGUF_E_FORMAT, 0,
          "not one blank" },
        { GGUF_TASK_WINOGRANDE, "0,a _ b,c,d,3\n", GGUF_E_FORMAT, 0,
          "line 1 is not number,sentence" },
        { GGUF_TASK_WINOGRANDE, "0,\"a _ b,c,d,1\n", GGUF_E_FORMAT, 0,
          "line 1 is not number,sentence" },
        { GGUF_TASK_WINOGRANDE, "0,a _ b,c,d,1,x\n", GGUF_E_FORMAT, 0,
          "line 1 is not number,sentence" },
        { GGUF_TASK_CHOICE, "a text", GGUF_E_FORMAT, 0, "neither JSON lines" },
        { GGUF_TASK_CHOICE,
          "{\"question\": \"q\", \"choices\": [\"a\", \"b\"], \"label\": 1}\n"
          "{\"question\": \"q\", \"choices\": [\"a\", \"b\", \"label\": 1}\n",
          GGUF_E_FORMAT, 100, "line 2 is not an object of such a task, at" },
        { GGUF_TASK_CHOICE,
          "{\"question\": \"q\", \"choices\": [\"a\", \"b\"], \"label\": 2}\n",
          GGUF_E_FORMAT, 0, "line 1: \"label\" or \"answer\" is not" },
        { GGUF_TASK_CHOICE,
          "{\"question\": \"q\", \"choices\": [\"a\", \"b\"]}\n",
          GGUF_E_FORMAT, 0, "line 1: \"label\" or \"answer\" is not" },
        { GGUF_TASK_CHOICE,
          "{\"question\": \"q\", \"choices\": [\"a\", \"b\"], \"labels\": "
          "[0, 0]}\n",
          GGUF_E_FORMAT, 0, "line 1: no answer is right" },
        { GGUF_TASK_CHOICE,
          "{\"question\": \"q\", \"choices\": [\"a\", \"b\"], \"labels\": "
          "[1]}\n",
          GGUF_E_FORMAT, 0, "line 1: there are not as many \"labels\"" },
        { GGUF_TASK_CHOICE, "{\"choices\": [\"a\", \"b\"], \"label\": 0}",
          GGUF_E_FORMAT, 0, "line 1: there is no \"question\"" },
        { GGUF_TASK_CHOICE,
          "{\"question\": \"q\", \"choices\": [\"a\"], \"label\": 0}",
          GGUF_E_FORMAT, 0, "line 1: 1 answers, must be 2 or more" },
        { GGUF_TASK_CHOICE, "{\"question\": \"\\ud800\"}", GGUF_E_FORMAT, 20,
          "at character 21" },
        { GGUF_TASK_HELLASWAG, "{\"endings\": [\"a\", \"b\"]}", GGUF_E_FORMAT,
          0, "line 1: there is no \"ctx\"" },
        { GGUF_TASK_WINOGRANDE,
          "{\"sentence\": \"a _ b\", \"option1\": \"c\"}", GGUF_E_FORMAT, 0,
          "\"option1\" or \"option2\" is missing" },
    };
    for (size_t k = 0; k < GG_LEN(cases); k++) {
        struct gguf_tasks *t;
        struct gguf_error err;
        gguf_error_clear(&err);
        const enum gguf_status st =
            gguf_tasks_parse(&t, cases[k].kind, cases[k].file,
                             strlen(cases[k].file), NULL, &err);
        ok(st == cases[k].st && !t && err.status == cases[k].st &&
               err.offset == cases[k].off &&
               strstr(err.message, cases[k].what),
           "%s (byte %u)", err.message, (unsigned)err.offset);
        gguf_tasks_destroy(t);
    }
}

/* A binary file of choices that is truncated anywhere, or has any byte
 * changed, is refused or read. The whole file has the tasks of the JSON lines.
 */
static void check_bytes(void)
{
    static const unsigned char bytes[] = {
        1, 0,   0, 0, 8, 0, 0,   0,   1, 0, 0, 0, 'q', 2, 0, 0, 0, 1, 0, 0,
        0, 'a', 2, 0, 0, 0, 'b', 'c', 0, 0, 0, 0, 1,   0, 0, 0, 0, 0, 0, 0,
    };
    struct gguf_tasks *t;
    struct gguf_error err;
    size_t n_read = 0;
    ok(!gguf_tasks_parse(&t, GGUF_TASK_CHOICE, bytes, sizeof bytes, NULL,
                         &err) &&
           gguf_tasks_n_tasks(t) == 1 && gguf_tasks_max_answers(t) == 2,
       "a file of choices");
    gguf_tasks_destroy(t);
    for (size_t n = 0; n < sizeof bytes - 4; n++) {
        unsigned char *copy = malloc(n + 1);
        memcpy(copy, bytes, n);
        n_read += !gguf_tasks_parse(&t, GGUF_TASK_CHOICE, copy, n, NULL, &err);
        gguf_tasks_destroy(t);
        free(copy);
    }
    ok(!n_read, "cut off at each byte it is refused");
    for (size_t i = 0; i < sizeof bytes; i++)
        for (unsigned v = 1; v < 256; v += 127) {
            unsigned char copy[sizeof bytes];
            memcpy(copy, bytes, sizeof copy);
            copy[i] = (unsigned char)(copy[i] + v);
            n_read += !gguf_tasks_parse(&t, GGUF_TASK_CHOICE, copy,
                                        sizeof copy, NULL, &err);
            gguf_tasks_destroy(t);
        }
    ok(n_read > 10 && n_read < 3 * sizeof bytes,
       "with any byte changed it is read or refused");
}

int main(void)
{
    check_refused();
    check_bytes();
    return done_testing();
}
