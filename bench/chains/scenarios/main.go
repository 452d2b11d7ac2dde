// Command scenarios holds the rates of chains of a lease in scenarios, through functions
// that are processes, whose processor time the agent sets (cpu: auto), and judges what
// arrives by the measures of agent/control/sim.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sublet/agent/control"
	"sublet/agent/profile"
	"sublet/bench/harness"
	"sublet/datapath/kernel"
)

var (
	seconds = flag.Float64("seconds", 8, "length of a phase")
	only    = flag.String("only", "", "scenarios with this in their names")
)

// Of samples, and the port that chains lead to.
const (
	interval = 100 * time.Millisecond
	port     = 9000
)

func main() {
	if len(os.Args) > 1 {
		inside := map[string]func([]string) error{copierCommand: copier, sendCommand: send, countCommand: count}
		if f := inside[os.Args[1]]; f != nil {
			if err := f(os.Args[2:]); err != nil {
				log.Fatal(err)
			}
			return
		}
		if os.Args[1] == kernel.InitCommand {
			log.Fatal(kernel.RunLaunch())
		}
	}
	harness.Main("chains/scenarios", run)
}

// bed is a lab of one host.
type bed struct {
	exe, program string // sublet, and this program as nodes see it
	dir          string
	groups       kernel.Cgroups
}

func run(ctx context.Context, exe string) (err error) {
	b := bed{exe: exe}
	if b.dir, err = os.MkdirTemp("/var/lib", "scenarios"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return err
	}
	if err := b.install(); err != nil {
		return err
	}
	profiles, err := b.profiles(ctx)
	if err != nil {
		return err
	}
	substrate := filepath.Join(b.dir, "substrate.yaml")
	if err := os.WriteFile(substrate, []byte("hosts: [{name: h1, cpu: 16, memory: 4GiB, capacity: 10Gbit}]\n"), 0o600); err != nil {
		return err
	}
	if err := b.sublet(ctx, "lab", "up", "--name", fmt.Sprint("scenarios", os.Getpid()), substrate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.sublet(context.WithoutCancel(ctx), "lab", "down")) }()
	t := harness.Table{Head: []string{"scenario", "seconds judged", "error %", "reaction s", "reallocations", "overshoot %", "processor", "used %"}}
	for i, s := range scenarios(*seconds) {
		if !strings.Contains(s.name, *only) {
			continue
		}
		l, err := b.measure(ctx, s, fmt.Sprintf("s%d-%d", i, os.Getpid()), profiles)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		judged := l.judge(s)
		log.Print(s.name, ": ", judged)
		t.Add(append([]any{s.name}, judged...)...)
	}
	t.Print(os.Stdout)
	return nil
}

// install puts this program where nodes see it.
func (b *bed) install() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	b.program = filepath.Join(b.dir, "scenarios")
	if b.groups, err = kernel.FindCgroups("/sys/fs/cgroup"); err != nil {
		return err
	}
	return os.WriteFile(b.program, text, 0o755)
}

// profiles are what frames cost copiers, by additions.
func (b *bed) profiles(ctx context.Context) (map[int]control.Profile, error) {
	made := make(map[int]control.Profile)
	for _, additions := range []int{0, half, heavy} {
		r, err := profile.Measure(ctx, profile.Spec{Argv: []string{b.program, copierCommand, fmt.Sprint("-additions=", additions)}, Shares: []float64{0.2, 0.5}, Sizes: []int{64, 512, 1514}, Window: time.Second})
		if err != nil {
			return nil, err
		}
		made[additions] = r.Profile
		fmt.Printf("with %d additions a packet costs %.2f us and %.3f ns for each byte\n", additions, 1e6*r.Profile.Fixed, 1e9*r.Profile.PerByte)
	}
	fmt.Println()
	return made, nil
}

func (b *bed) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, b.exe, append([]string{"--run", filepath.Join(b.dir, "run")}, args...)...)
}

func (b *bed) sublet(ctx context.Context, args ...string) error {
	if out, err := b.command(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// measure runs a scenario and takes its network away.
func (b *bed) measure(ctx context.Context, s scenario, network string, profiles map[int]control.Profile) (l logged, err error) {
	file := filepath.Join(b.dir, network+".yaml")
	if err := os.WriteFile(file, []byte(s.request(network, b.program, profiles)), 0o600); err != nil {
		return l, err
	}
	if err := b.sublet(ctx, "up", file); err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, b.sublet(context.WithoutCancel(ctx), "down", network)) }()
	ctx, cancel := context.WithCancel(ctx)
	var counters, senders []*exec.Cmd
	defer func() {
		cancel()
		for _, c := range append(counters, senders...) {
			_ = c.Wait() // the context has ended it
		}
	}()
	for i := range len(s.chains) + 1 {
		node := "a"
		if i < len(s.chains) {
			node = fmt.Sprint("b", i)
		}
		c := b.command(ctx, "exec", network+"/"+node, "--", b.program, countCommand, fmt.Sprint(port))
		c.Stdout = new(bytes.Buffer)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			return l, err
		}
		counters = append(counters, c)
	}
	if senders, err = b.senders(ctx, s, network); err != nil {
		return l, err
	}
	if l, err = b.watch(ctx, s, network); err != nil {
		return l, err
	}
	cancel()
	for _, c := range counters {
		_ = c.Wait() // the context has ended it
		l.came = append(l.came, parseCounted(c.Stdout.(*bytes.Buffer).Bytes()))
	}
	counters = nil
	return l, nil
}

// senders begin to send.
func (b *bed) senders(ctx context.Context, s scenario, network string) (list []*exec.Cmd, err error) {
	start := func(args ...string) error {
		c := b.command(ctx, append([]string{"exec", network + "/a", "--"}, args...)...)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			return err
		}
		list = append(list, c)
		return nil
	}
	time.Sleep(time.Second) // so that counters count
	for i, c := range s.chains {
		if s.tcp {
			if err := b.sublet(ctx, "exec", "-d", network+"/b0", "--", "iperf3", "-s", "-p", fmt.Sprint(port)); err != nil {
				return list, err
			}
			if err := b.sublet(ctx, "exec", network+"/a", "--", "ethtool", "-K", "eth0", "tso", "off", "gso", "off"); err != nil {
				return list, err
			}
			time.Sleep(time.Second)
			return list, start("iperf3", "-c", "b0", "-p", fmt.Sprint(port), "-t", strconv.Itoa(int(s.seconds())))
		}
		for _, sender := range c.senders {
			args := []string{b.program, sendCommand, fmt.Sprintf("b%d:%d", i, port)}
			for _, burst := range sender {
				args = append(args, burst.String())
			}
			if err := start(args...); err != nil {
				return list, err
			}
		}
	}
	return list, nil
}
