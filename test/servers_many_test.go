package test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sublet/vnet"
)

// BenchmarkTakeOverWithLeases measures how long nobody answers after a leader with
// SUBLET_LEASES leases (2,000 unless stated) was killed.
func BenchmarkTakeOverWithLeases(b *testing.B) {
	if !secluded(b) {
		return
	}
	many := 2000
	if n, err := strconv.Atoi(os.Getenv("SUBLET_LEASES")); err == nil {
		many = n
	}
	const hosts = 100
	substrate := "hosts:\n  - {name: m2, cpu: 64, memory: 64GiB}\n"
	for h := range hosts {
		substrate += fmt.Sprintf("  - {name: h%d, cpu: 640, memory: 640GiB}\n", h)
	}
	c := newControl(b, 3, substrate)
	client := c.client(c.leader().address)
	var asking sync.WaitGroup
	for caller := range 8 {
		asking.Go(func() {
			for i := caller; i < many; i += 8 {
				on := vnet.HostID(fmt.Sprintf("h%d", i%hosts))
				if answer := answerOf(b.Context(), client, asked{verbUp, fmt.Sprintf("n%d", i)}, on); answer != answerDone {
					b.Errorf("lease %d: %s", i, answer)
					return
				}
			}
		})
	}
	asking.Wait()
	for _, fault := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		b.Run(fmt.Sprintf("leases=%d/by=%s", many, strings.ReplaceAll(fault.String(), " ", "-")), func(b *testing.B) {
			var took []float64
			for i := range b.N {
				took = append(took, c.lost(i, fault).Seconds()*1e3)
			}
			reportSpread(b, took)
		})
	}
}
