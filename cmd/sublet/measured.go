package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// measuredFile keeps what this machine was found to do, for all servers and
// labs on it.
const measuredFile = "/var/lib/sublet/measured.json"

// mostAge is how old a measurement may be before it is made again.
const mostAge = 90 * 24 * time.Hour

// thisMachine names what a measurement depends on: kernel and processors.
func thisMachine() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	text := fmt.Sprintf("Linux %s, %d x %s", unix.ByteSliceToString(name.Release[:]), runtime.NumCPU(), processorModel())
	return text[:min(len(text), vnet.MaxMachine)]
}

// processorModel is that of the first processor.
func processorModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// holds says whether a measurement was made on a machine as it is now, and not
// too long ago.
func holds(m vnet.Measurement, machine string, now time.Time) bool {
	age := now.Sub(m.MeasuredAt)
	return m.Measured > 0 && m.Delay > 0 && m.Machine == machine && age > -time.Hour && age < mostAge
}

// remembered is the last measurement of this machine, if it still holds.
func remembered(file string, now time.Time) (vnet.Measurement, bool) {
	var m vnet.Measurement
	if safeDir(filepath.Dir(file)) != nil {
		return m, false
	}
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &m) != nil {
		return m, false
	}
	return m, holds(m, thisMachine(), now)
}

// rememberedAge is how old what measuredNow says may be.
const rememberedAge = time.Minute

// measuredNow is remembered, for those who ask every second.
func measuredNow(file string) func() vnet.Measurement {
	var mu sync.Mutex
	var last vnet.Measurement
	var read time.Time
	return func() vnet.Measurement {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(read) > rememberedAge {
			last, _ = remembered(file, now)
			read = now
		}
		return last
	}
}

// remember keeps a measurement of this machine.
func remember(file string, m vnet.Measurement) error {
	if err := safeDir(filepath.Dir(file)); err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(temporary, text, 0o644); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return os.Rename(temporary, file)
}

// onThisMachine tells a substrate whose hosts are all this machine what that
// forwards: what was measured, or else what DefaultHostCapacity stands for on
// each of its processors.
func onThisMachine(sub vnet.Substrate, m vnet.Measurement, measured bool, processors int) vnet.Substrate {
	sub.Forwards = vnet.DefaultHostCapacity * vnet.Rate(processors)
	if !measured {
		return sub
	}
	sub.Forwards = m.Measured
	sub.Hosts = append([]vnet.SubstrateNode(nil), sub.Hosts...)
	for i := range sub.Hosts {
		sub.Hosts[i].Measurement = m
	}
	sub.ApplyMeasured()
	return sub
}
