package main

import (
	"os/exec"
	"testing"
)

// Prometheus itself plays the alert rules on series as the server names them
// (server's TestMetricsShowEachWhatIsTheirs has the same names).
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool (Debian's package prometheus) is not installed")
	}
	command := exec.Command(promtool, "test", "rules", "alerts_test.yaml")
	command.Dir = "../../docs/monitoring"
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
