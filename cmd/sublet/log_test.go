package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// What is logged is what the flag asks for, and a level that is none is refused.
func TestLogLevel(t *testing.T) {
	for text, want := range map[string]int{"": 2, "debug": 3, "warn": 1, "ERROR": 0} {
		t.Run(text, func(t *testing.T) {
			var level slog.Level
			f := pflag.NewFlagSet("", pflag.ContinueOnError)
			logLevel(f, &level)
			if text != "" {
				if err := f.Parse([]string{"--log-level", text}); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			log := (&app{err: &out}).log(level)
			log.Debug("x")
			log.Info("x")
			log.Warn("x")
			if got := strings.Count(out.String(), "msg=x"); got != want {
				t.Errorf("--log-level %q logs %d of three", text, got)
			}
		})
	}
	if code, _, errs := sublet(t, "", "agent", "--host", "h1", "--log-level", "loud"); code != exitInput || !strings.Contains(errs, "loud") {
		t.Errorf("a level that is none: exit %d, %s", code, errs)
	}
}
