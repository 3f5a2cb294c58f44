/* SPDX-License-Identifier: MIT */
/* os_program_win.c - the process of a program, its end, streams and the
 * console, on Windows */
#include "config.h"
#include "base/os/os_program.h"
#include "base/os/os_win.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- the process ---- */

static const char *fault_line;
static int fault_status;

/* End the process if a page of a mapped file cannot be read. */
static LONG CALLBACK on_fault(EXCEPTION_POINTERS *e)
{
    if (e->ExceptionRecord->ExceptionCode != EXCEPTION_IN_PAGE_ERROR)
        return EXCEPTION_CONTINUE_SEARCH;
    DWORD n;
    (void)WriteFile(GetStdHandle(STD_ERROR_HANDLE), fault_line,
                    (DWORD)strlen(fault_line), &n, NULL);
    (void)TerminateProcess(GetCurrentProcess(), (UINT)fault_status);
    return EXCEPTION_CONTINUE_SEARCH;
}

/* The console keeps its settings after the program. */
enum { ESCAPE_SEQUENCES = 4 }; /* bit of the console's mode */

static UINT console_page;
static DWORD console_mode[2];

static HANDLE output_handle(int i)
{
    return GetStdHandle(i ? STD_ERROR_HANDLE : STD_OUTPUT_HANDLE);
}

static void restore_console(void)
{
    for (int i = 0; i < 2; i++)
        if (console_mode[i])
            (void)SetConsoleMode(output_handle(i), console_mode[i]);
    if (console_page)
        (void)SetConsoleOutputCP(console_page);
}

/* Let the console take UTF-8 and escape sequences (Windows 10). Without a
 * buffer the C library would write each byte of a character by itself. */
static void prepare_console(void)
{
    enum { BUFFER = 1 << 16 };
    bool any = false;
    for (int i = 0; i < 2; i++) {
        DWORD mode;
        if (!GetConsoleMode(output_handle(i), &mode))
            continue;
        any = true;
        if (i == 0)
            (void)setvbuf(stdout, NULL, _IOFBF, BUFFER);
        if (!(mode & ESCAPE_SEQUENCES) &&
            SetConsoleMode(output_handle(i), mode | ESCAPE_SEQUENCES))
            console_mode[i] = mode;
    }
    if (!any)
        return;
    console_page = GetConsoleOutputCP();
    (void)SetConsoleOutputCP(CP_UTF8);
    (void)atexit(restore_console);
}

/* Open closed standard streams, so that no other file takes their place. The
 * lowest free descriptor is taken. */
static void occupy_standard(void)
{
    for (int fd = 0; fd <= GG_OS_STDERR; fd++)
        if (_get_osfhandle(fd) == -1 && _wopen(L"NUL", _O_RDWR) < 0)
            return;
}

void gg_os_program_begin(const char *bus_error, int status)
{
    fault_line = bus_error;
    fault_status = status;
    (void)AddVectoredExceptionHandler(1, on_fault);
    (void)SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    occupy_standard();
    for (int fd = 0; fd <= GG_OS_STDERR; fd++)
        (void)_setmode(fd, _O_BINARY);
    prepare_console();
}

void gg_os_program_raise_limits(void)
{
    (void)_setmaxstdio(2048);
}

void gg_os_program_defer_close(void)
{
}

/* ---- stopping ---- */

static void (*volatile end_fn)(int number);

static BOOL WINAPI on_console(DWORD event)
{
    void (*const fn)(int) = end_fn;
    if (!fn || event == CTRL_LOGOFF_EVENT) /* only services get the latter */
        return FALSE;
    end_fn = NULL; /* the second event ends the program */
    fn(event == CTRL_C_EVENT ? SIGINT : SIGTERM);
    /* the system ends the process when the handler of a closed console
     * returns, or some seconds later */
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT)
        Sleep(INFINITE);
    return TRUE;
}

void gg_os_program_catch_end(void (*fn)(int number))
{
    end_fn = fn;
    (void)SetConsoleCtrlHandler(on_console, TRUE);
}

void gg_os_program_raise(int number)
{
    restore_console();
    ExitProcess(128u + (UINT)number);
}

/* ---- streams ---- */

int gg_os_stream_fd(const char *path, bool writes)
{
    HANDLE h = gg_os_win_open(
        path, writes ? GENERIC_WRITE | FILE_READ_ATTRIBUTES : GENERIC_READ,
        OPEN_EXISTING, 0);
    return h == INVALID_HANDLE_VALUE ? -1 : gg_os_win_descriptor(h, 0);
}

int gg_os_stream_write(int fd, const void *data, size_t size)
{
    uint64_t done;
    HANDLE h = gg_os_win_handle(fd);
    return h == INVALID_HANDLE_VALUE
               ? -1
               : gg_os_win_write(h, data, size, NULL, &done);
}

int gg_os_stream_stdin(void)
{
    const int fd = _dup(GG_OS_STDIN);
    if (fd >= 0)
        (void)_setmode(fd, _O_BINARY);
    return fd;
}

int gg_os_stream_silence(FILE *f)
{
    return freopen("NUL", "wb", f) ? 0 : -1;
}

FILE *gg_os_stream_memory(char **text, size_t *size)
{
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    *text = NULL;
    *size = 0;
    if (!GetTempPathW(MAX_PATH, folder) ||
        !GetTempFileNameW(folder, L"ggf", 0, path)) {
        (void)gg_os_win_fail_last();
        return NULL;
    }
    FILE *f = _wfopen(path, L"w+bTD"); /* closing it removes it */
    if (!f)
        (void)DeleteFileW(path);
    return f;
}

int gg_os_stream_memory_end(FILE *f, char **text, size_t *size)
{
    int rc = -1;
    if (fflush(f) == 0 && !ferror(f) && fseek(f, 0, SEEK_END) == 0) {
        const __int64 n = _ftelli64(f);
        *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
        rewind(f);
        if (*text && fread(*text, 1, (size_t)n, f) == (size_t)n) {
            (*text)[n] = '\0';
            *size = (size_t)n;
            rc = 0;
        }
    }
    if (rc != 0) {
        free(*text);
        *text = NULL;
    }
    (void)fclose(f);
    return rc;
}

/* ---- terminals ---- */

bool gg_os_terminal_is(int fd)
{
    DWORD mode;
    HANDLE h = gg_os_win_handle(fd);
    return h != INVALID_HANDLE_VALUE && GetConsoleMode(h, &mode);
}

bool gg_os_terminal_has_colours(int fd)
{
    DWORD mode;
    HANDLE h = gg_os_win_handle(fd);
    return h != INVALID_HANDLE_VALUE && GetConsoleMode(h, &mode) &&
           (mode & ESCAPE_SEQUENCES);
}

int gg_os_terminal_columns(int fd)
{
    CONSOLE_SCREEN_BUFFER_INFO s;
    HANDLE h = gg_os_win_handle(fd);
    if (h == INVALID_HANDLE_VALUE || !GetConsoleScreenBufferInfo(h, &s))
        return 0;
    return s.srWindow.Right - s.srWindow.Left + 1;
}
