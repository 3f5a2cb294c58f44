/* SPDX-License-Identifier: MIT */
/* deferred_close.h - exiting before the file system has freed a file
 *
 * The process that closes the last descriptor of a file without a name waits
 * until the system has freed its blocks: about 0.1 s for each gigabyte in the
 * page cache. After a stopped job nothing depends on that, so a child process
 * takes over the wait.
 */
#ifndef TOOLS_COMMON_DEFERRED_CLOSE_H
#define TOOLS_COMMON_DEFERRED_CLOSE_H

/* Fork a child that holds all descriptors of this process except standard
 * input, output and error. It does nothing, and ends when this process has
 * ended. Call this once, before the files are closed. If the fork fails,
 * closing takes its usual time. */
void deferred_close_begin(void);

#endif
