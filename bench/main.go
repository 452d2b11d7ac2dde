// Command bench runs benchmarks of its table by name, by group, or all that
// need no file from the caller:
//
//	go run ./bench                                  # all
//	go run ./bench -list
//	go run ./bench datapath experiments/isolation
//	FILES="a.txt b.txt" go run ./bench embedding/replay
//
// One runs at a time: senders, receivers and the substrate share the machine's
// processors. What fails keeps nothing after it from being run.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	list := flag.Bool("list", false, "print the table and end")
	flag.Parse()
	if *list {
		markdown(os.Stdout)
		return
	}
	chosen, err := choose(flag.Args(), os.Getenv)
	if err != nil {
		log.Print("bench: ", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if failed := runAll(ctx, chosen); len(failed) > 0 {
		log.Fatal("bench: failed: ", strings.Join(failed, ", "))
	}
}

// choose gives the benchmarks of these names and groups, or, without any, all
// that need no file.
func choose(names []string, getenv func(string) string) ([]benchmark, error) {
	var chosen []benchmark
	for _, b := range table {
		if len(names) == 0 && len(b.inputs()) == 0 {
			chosen = append(chosen, b)
		}
	}
	for _, name := range names {
		found := find(name)
		if len(found) == 0 {
			return nil, fmt.Errorf("there is no benchmark %q; `go run ./bench -list` prints all", name)
		}
		for _, b := range found {
			for _, input := range b.inputs() {
				if getenv(input) == "" && b.name == name {
					return nil, fmt.Errorf("%s needs %s: state it as %s=VALUE", b.name, input, input)
				}
			}
			if len(b.inputs()) == 0 || b.name == name {
				chosen = append(chosen, b)
			}
		}
	}
	return chosen, nil
}

// find gives the benchmark of a name, or those of a group.
func find(name string) []benchmark {
	var found []benchmark
	for _, b := range table {
		if b.name == name || b.group() == name {
			found = append(found, b)
		}
	}
	return found
}

var variable = regexp.MustCompile(`\$([A-Z]+)`)

// inputs are the files that the caller states, by the names of variables.
func (b benchmark) inputs() []string {
	var names []string
	for _, m := range variable.FindAllStringSubmatch(b.command, -1) {
		names = append(names, m[1])
	}
	return names
}

// runAll runs one benchmark after another and names those that failed.
func runAll(ctx context.Context, chosen []benchmark) (failed []string) {
	var total time.Duration
	for _, b := range chosen {
		total += b.takes
	}
	log.Printf("bench: %d of %d benchmarks, about %s", len(chosen), len(table), about(total))
	for _, b := range chosen {
		fmt.Printf("\n## %s\n\n`%s`, about %s\n\n", b.name, b.command, about(b.takes))
		if err := b.run(ctx); err != nil {
			log.Printf("bench: %s: %v", b.name, err)
			failed = append(failed, b.name)
		}
		if ctx.Err() != nil {
			return failed
		}
	}
	return failed
}

// run starts the command with the program under test ($SUBLET_BIN) first in
// the path. An interrupt goes to all processes of the command (go run, shells
// and pipes pass none on), so that they take away what they made.
func (b benchmark) run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", b.command)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(os.Getenv("SUBLET_BIN"))+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	return cmd.Run()
}
