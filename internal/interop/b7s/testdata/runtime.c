// A stand-in for the runtime that b7s workers start once per item. It prints
// the first argument after "--". Later ones change what it does: fail exits
// with status 3, sleep=<ms> sleeps first, once=<path> fails the first time,
// log=<path> appends the first argument to a file, env=<name> prints a variable
// too, and stdin prints the standard input.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int note(const char *path, const char *text) {
	char line[4096];
	int n = snprintf(line, sizeof line, "%s\n", text);
	int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	return file < 0 || write(file, line, n) != n;
}

static void rest(long ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, 0);
}

static void copy(void) {
	for (int c; (c = getchar()) != EOF;) putchar(c);
}

int main(int argc, char **argv) {
	int at = 1;
	while (at < argc && strcmp(argv[at], "--")) at++;
	if (++at >= argc) return 0;
	const char *text = argv[at];
	int failed = 0;
	fputs(text, stdout);
	for (int i = at + 1; i < argc; i++) {
		if (!strncmp(argv[i], "sleep=", 6)) rest(atol(argv[i] + 6));
		if (!strncmp(argv[i], "log=", 4) && note(argv[i] + 4, text)) return 4;
		if (!strncmp(argv[i], "once=", 5)) failed |= open(argv[i] + 5, O_CREAT | O_EXCL, 0600) >= 0;
		if (!strncmp(argv[i], "env=", 4) && getenv(argv[i] + 4)) fputs(getenv(argv[i] + 4), stdout);
		if (!strcmp(argv[i], "stdin")) copy();
		if (!strcmp(argv[i], "fail")) failed = 1;
	}
	if (!failed) return 0;
	fputs("asked to fail", stderr);
	return 3;
}
