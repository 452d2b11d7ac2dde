package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A real Prometheus scrapes the server, and takes the alert rules.
func TestPrometheusScrapesTheServer(t *testing.T) {
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed")
	}
	r := newRig(t)
	watched := httptest.NewServer(r.server.Watched())
	defer watched.Close()
	rules := must[string](t)(filepath.Abs("../docs/monitoring/alerts.yaml"))
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - job_name: sublet\n    static_configs: [{targets: [%q]}]\n", rules, watched.Listener.Addr())
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	free := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	address := free.Addr().String()
	free.Close()
	command := exec.Command(prometheus, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+address)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	get := func(path string, value any) bool {
		answer, err := http.Get("http://" + address + path)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return json.NewDecoder(answer.Body).Decode(value) == nil
	}
	eventually(t, "Prometheus has nothing of the server", func() bool {
		var found struct {
			Data struct {
				Result []struct{ Metric map[string]string }
			}
		}
		return get("/api/v1/query?query=sublet_host_cpu_cores", &found) && len(found.Data.Result) == len(twoHosts().Hosts)
	})
	eventually(t, "Prometheus does not evaluate the rules", func() bool {
		var found struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError string }
				}
			}
		}
		if !get("/api/v1/rules", &found) || len(found.Data.Groups) == 0 {
			return false
		}
		for _, rule := range found.Data.Groups[0].Rules {
			if rule.Health == "err" {
				t.Fatalf("%s: %s", rule.Name, rule.LastError)
			}
			if rule.Health != "ok" {
				return false
			}
		}
		return len(found.Data.Groups[0].Rules) > 5
	})
}
