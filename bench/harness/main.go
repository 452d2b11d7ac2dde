package harness

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
)

// Main is the main function of a benchmark: it reads the flags, builds the
// program under test and runs the benchmark with it, which Ctrl-C ends.
func Main(name string, run func(ctx context.Context, exe string) error) {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := build(ctx, run); err != nil {
		log.Fatal(name, ": ", err)
	}
}

func build(ctx context.Context, run func(ctx context.Context, exe string) error) error {
	exe, clean, err := Build()
	if err != nil {
		return err
	}
	defer clean()
	return run(ctx, exe)
}
