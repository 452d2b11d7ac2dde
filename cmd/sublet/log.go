package main

import (
	"log/slog"

	"github.com/spf13/pflag"
)

// logLevel adds the flag of what runs for long.
func logLevel(f *pflag.FlagSet, level *slog.Level) {
	f.TextVar(level, "log-level", slog.LevelInfo, "the least of debug, info, warn and error that is logged")
}

// log writes to standard error.
func (a *app) log(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}
