package vxrouter

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// tenantConfig is the file of a router's directory with what its tenant wrote.
const tenantConfig = "tenant.conf"

// Where vtysh in the jail finds that, and its own configuration.
const (
	toldConfig = kernel.FRREtc + "/" + tenantConfig
	vtyshDir   = kernel.FRREtc + "/etc"
)

// tryConfig asks FRR whether it understands what a tenant wrote, without a
// daemon: vtysh knows all statements.
func (p *Part) tryConfig(ctx context.Context, key string, want daemons) error {
	if want.FRR == nil || want.FRR.Config == "" {
		return nil
	}
	if err := p.writeConfigs(key, want); err != nil {
		return err
	}
	return p.vtysh(ctx, key, "FRR does not understand the configuration", "--dryrun", "--inputfile", toldConfig)
}

// tellConfig tells running daemons what a tenant wrote: vtysh gives each its part.
func (p *Part) tellConfig(ctx context.Context, key string, want *plan.FRR) error {
	if want == nil || want.Config == "" {
		return nil
	}
	return p.vtysh(ctx, key, "FRR does not take the configuration", "--vty_socket", kernel.FRRRun, "--inputfile", toldConfig)
}

// vtysh runs it inside the router, where it can read and write what the tenant
// can. All it started ends with it.
func (p *Part) vtysh(ctx context.Context, key, failed string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	cmd, err := p.inside(key, append([]string{kernel.VTYSH, "--config_dir", vtyshDir}, args...))
	if err != nil {
		return err
	}
	defer closeAll(cmd.ExtraFiles)
	said, err := scratch()
	if err != nil {
		return err
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })()
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: vtysh took longer than %s", failed, startTime.Round(time.Second))
	case errors.As(err, &exit):
		return fmt.Errorf("%s: %s", failed, wordsIn(said))
	}
	return err
}
