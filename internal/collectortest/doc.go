// Package collectortest runs processes of the command that send their spans to the receiver of
// OpenTelemetry's collector. It is a module of its own, so that the collector is no dependency of
// the project.
package collectortest
