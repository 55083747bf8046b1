// Command hello is the program of the README: one typed function, submitted with
// a delay, retried where it fails, and awaited.
package main
