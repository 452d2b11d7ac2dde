package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// refuser is a server that does not let an agent in.
type refuser struct {
	causes []error // of the first attempts; then plans are given
	calls  int
}

func (r *refuser) Plan(ctx context.Context, host vnet.HostID, after plan.Origin) (plan.Host, error) {
	r.calls++
	if r.calls <= len(r.causes) {
		return plan.Host{}, r.causes[r.calls-1]
	}
	<-ctx.Done()
	return plan.Host{}, ctx.Err()
}

func (r *refuser) Report(context.Context, report.Report) error { return nil }

// An agent that its server refuses says so once for every cause, whatever port
// its attempts come from.
func TestRefusedAgentSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var causes []error
		for port := range 20 {
			causes = append(causes, fmt.Errorf("read tcp 10.0.0.2:%d->10.0.0.1:7443: remote error: tls: bad certificate", 40000+port))
		}
		for range 20 {
			causes = append(causes, errors.New(`no host "h9" in the substrate`))
		}
		var log bytes.Buffer
		ctx, stop := context.WithCancel(context.Background())
		a := &Agent{Host: "h9", Source: &refuser{causes: causes}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.poll(ctx, plan.Origin{}, make(chan plan.Host), make(chan error, 1))
		}()
		time.Sleep(time.Minute)
		stop()
		<-done
		text := log.String()
		if n := strings.Count(text, "level=WARN"); n != 2 || !strings.Contains(text, "bad certificate") || !strings.Contains(text, "h9") {
			t.Errorf("40 attempts with two causes gave %d warnings:\n%s", n, text)
		}
	})
}

// What is over is said as well, once.
func TestTroubleEnds(t *testing.T) {
	var log bytes.Buffer
	x := trouble{log: slog.New(slog.NewTextHandler(io.Writer(&log), nil)), what: "away", over: "back"}
	for _, err := range []error{nil, errors.New("x"), errors.New("x"), nil, nil} {
		x.note(err)
	}
	if text := log.String(); strings.Count(text, "msg=away") != 1 || strings.Count(text, "msg=back") != 1 {
		t.Errorf("one trouble is told as:\n%s", text)
	}
}

// Interfaces are read at most once a heartbeat; the last ones are told when they
// cannot be read.
func TestInterfacesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, fail := 0, error(nil)
		a := &Agent{Log: slog.New(slog.DiscardHandler), Interfaces: func() ([]report.Interface, error) {
			reads++
			return []report.Interface{{Name: fmt.Sprint("eth", reads)}}, fail
		}}
		for range 10 {
			a.survey()
		}
		if reads != 1 {
			t.Errorf("interfaces were read %d times at once", reads)
		}
		time.Sleep(heartbeat)
		if got := a.survey(); got[0].Name != "eth2" {
			t.Errorf("after a heartbeat %v are told", got)
		}
		time.Sleep(heartbeat)
		fail = errors.New("no memory")
		if got := a.survey(); got[0].Name != "eth2" {
			t.Errorf("when they cannot be read %v are told", got)
		}
	})
}
