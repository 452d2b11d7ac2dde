package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	generator "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"

	"sublet/agent/iplbd"
	"sublet/datapath/vxswitch/live"
	"sublet/embed/replay"
	"sublet/lab"
	"sublet/lab/workflow"
	"sublet/lease/api"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

var rewriteOutputs = flag.Bool("rewrite", false, "write docs/schema/output anew")

const outputFolder = "../../docs/schema/output/"

// output is a form that commands print with -o json, and its schema's name.
type output struct {
	name     string
	forms    []any    // what it may be
	commands []string // which print it; those of which a form is one line each too
}

var outputs = []output{
	{"aftermath", forms(api.Aftermath{}), words("fail", "mend", "restore", "substrate apply")},
	{"bench-application", forms([]workflow.Row{}), words("bench application")},
	{"bench-embed", forms(replay.Figures{}), words("bench embed")},
	{"bench-multipath", forms([]multipathRow{}, []damageRow{}), words("bench multipath")},
	{"bench-openflow", forms(openflowLoad{}), words("bench openflow")},
	{"calendar", forms(api.Calendar{}), words("calendar")},
	{"calibration", forms(calibration{}), words("calibrate")},
	{"chains", forms([]chainView{}), words("chains")},
	{"change", forms(api.Updated{}), words("apply", "renew")},
	{"consolidated", forms(api.Consolidated{}), words("consolidate")},
	{"doctor", forms([]finding{}), words("doctor")},
	{"drained", forms(api.Drained{}), words("drain", "undrain")},
	{"events", forms([]vnet.Happening{}), words("events")},
	{"failure", forms(failure{}), nil},
	{"flows", forms([]report.Flow{}), words("flows")},
	{"flows-status", forms(report.OpenFlowStatus{}), words("flows status")},
	{"flows-trace", forms(report.FlowTrace{}), words("flows trace")},
	{"hosts", forms([]api.Host{}), words("hosts")},
	{"lab", forms(lab.Status{}), words("lab")},
	{"lease", forms(vnet.Lease{}), words("pause", "resume")},
	{"leases", forms([]leaseView{}), words("leases", "wait")},
	{"ledger", forms([]vnet.Record{}), words("ledger")},
	{"link-states", forms([]linkStateView{}), words("impair", "link down", "link show", "link up")},
	{"links", forms([]api.Link{}), words("links")},
	{"loads", forms([]loadView{}), words("top")},
	{"maintenance", forms(api.Maintenance{}), words("maintenance add", "maintenance remove")},
	{"maintenance-list", forms([]api.Maintenance{}), words("maintenance list")},
	{"notify", forms(api.Notify{}), words("notify", "notify set")},
	{"offers", forms(api.Proposal{}), words("offers")},
	{"overlay", forms([]report.TunnelState{}), words("overlay")},
	{"overlay-tables", forms([]report.TableState{}), words("overlay show")},
	{"overlay-trace", forms(traceView{}), words("overlay trace")},
	{"paths", forms([]iplbd.Status{}), words("paths")},
	{"paths-relay", forms(relayCounts{}), words("paths relay")},
	{"plan", forms([]hostSteps{}), words("plan")},
	{"policy", forms([]api.PolicyView{}), words("policy")},
	{"processes", forms([]report.Process{}), words("ps")},
	{"proof", forms([]proofView{}), words("proof")},
	{"released", forms([]vnet.LeaseID{}), words("down")},
	{"sample", forms(report.Sample{}), words("watch")},
	{"servers", forms([]api.Server{}), words("servers")},
	{"stages", forms([]stageView{}), words("stage")},
	{"switch-status", forms(live.Status{}), words("vxswitch status")},
	{"token", forms(api.NewToken{}), words("token create")},
	{"tokens", forms([]trust.Token{}), words("token list")},
	{"up", forms(upView{}, trialRun{}), words("clone", "up")},
	{"verdict", forms(vnet.Verdict{}), words("check")},
	{"version", forms(versionView{}), words("version")},
}

// elsewhere are the commands whose output has a schema that is kept elsewhere,
// or another form than ours.
var elsewhere = map[string]string{
	"get":          "", // the languages of others
	"profile":      "../profile.schema.json",
	"sim vxswitch": "../simulation.schema.json",
}

func forms(list ...any) []any       { return list }
func words(list ...string) []string { return list }

func schemaFile(name string) string { return outputFolder + name + ".schema.json" }

// title says in the schema whose output it is.
func (o output) title() string {
	if o.commands == nil {
		return "What any command says of an error with -o json, on the standard error"
	}
	return "sublet " + strings.Join(o.commands, ", sublet ") + " -o json"
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	requestType   = reflect.TypeFor[vnet.Request]()
	timeType      = reflect.TypeFor[time.Time]()
	notOfName     = regexp.MustCompile(`[^A-Za-z0-9_.]+`)
)

// defined is a type's name among the definitions: those of several rooms are
// called alike.
func defined(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	return notOfName.ReplaceAllString(strings.TrimPrefix(t.String(), "main."), "_")
}

// reflector makes schemas; open ones let clients pass over what they do not know.
func reflector(t *testing.T, open bool) *generator.Reflector {
	return &generator.Reflector{
		Anonymous: true, AllowAdditionalProperties: open, Namer: defined,
		Mapper: func(of reflect.Type) *generator.Schema {
			switch {
			case of == timeType:
			case of == requestType: // which grows most often, and is described there
				return &generator.Schema{Type: "object", Description: "The request, as the API has it: Request of lease/api/openapi.yaml."}
			case of.Implements(textMarshaler) || reflect.PointerTo(of).Implements(textMarshaler) && of.Kind() != reflect.Struct:
				return &generator.Schema{Type: "string"}
			case of.Implements(jsonMarshaler):
				t.Errorf("%s writes its JSON itself: say here what it writes", of)
			}
			return nil
		},
	}
}

// schemaOf is the schema of an output.
func schemaOf(t *testing.T, o output, open bool) []byte {
	t.Helper()
	whole := &generator.Schema{Version: generator.Version, Title: o.title(), Definitions: generator.Definitions{}}
	var each []*generator.Schema
	for _, form := range o.forms {
		s := reflector(t, open).Reflect(form)
		nullable(reflect.TypeOf(form), s.Definitions, map[reflect.Type]bool{})
		for name, d := range s.Definitions {
			whole.Definitions[name] = d
		}
		s.Version, s.Definitions = "", nil
		each = append(each, s)
	}
	whole.AnyOf = each
	if len(each) == 1 {
		whole.AnyOf, whole.Ref, whole.Type, whole.Items = nil, each[0].Ref, each[0].Type, each[0].Items
	}
	text, err := json.MarshalIndent(whole, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// nullable says of fields that are written as null where they hold nothing, and of
// those of embedded structs that may be absent, what the generator does not.
func nullable(t reflect.Type, all generator.Definitions, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		nullable(t.Elem(), all, seen)
	case reflect.Map:
		nullable(t.Elem(), all, seen)
	case reflect.Struct:
		if d := all[defined(t)]; d != nil && d.Properties != nil {
			nullableFields(t, d, false)
		}
		for i := range t.NumField() {
			nullable(t.Field(i).Type, all, seen)
		}
	}
}

func nullableFields(t reflect.Type, d *generator.Schema, absent bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner, optional := f.Type, absent
			if inner.Kind() == reflect.Pointer {
				inner, optional = inner.Elem(), true
			}
			if inner.Kind() == reflect.Struct {
				nullableFields(inner, d, optional)
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		if absent {
			d.Required = slices.DeleteFunc(d.Required, func(r string) bool { return r == name })
		}
		p, there := d.Properties.Get(name)
		canBeNull := slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface}, f.Type.Kind())
		if there && canBeNull && !strings.Contains(options, "omit") && (p.Type != "" || p.Ref != "") {
			d.Properties.Set(name, &generator.Schema{AnyOf: []*generator.Schema{p, {Type: "null"}}})
		}
	}
}

// The published schemas of outputs are those of the types that commands print.
func TestSchemasOfOutputs(t *testing.T) {
	for _, o := range outputs {
		text := schemaOf(t, o, true)
		if *rewriteOutputs {
			if err := os.WriteFile(schemaFile(o.name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(schemaFile(o.name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, text) {
			t.Errorf("%s is not what the types say: run go test ./cmd/sublet -run TestSchemasOfOutputs -rewrite", schemaFile(o.name))
		}
	}
	files, err := filepath.Glob(schemaFile("*"))
	if err != nil || len(files) != len(outputs) {
		t.Errorf("%d schemas of %d outputs: %v", len(files), len(outputs), err)
	}
}

// Every command that prints JSON has a schema, and docs/api.md says which.
func TestEveryOutputHasASchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	said := func(command, file string) {
		if !regexp.MustCompile(`(?m)^\|.*` + "`" + command + "`" + `.*\(schema/` + regexp.QuoteMeta(file) + `\)`).Match(text) {
			t.Errorf("docs/api.md does not say that %s prints %s", command, file)
		}
	}
	has := make(map[string]bool)
	for _, o := range outputs {
		for _, command := range o.commands {
			has[command] = true
			if command != "mend" { // the former name of restore
				said(command, "output/"+o.name+".schema.json")
			}
		}
	}
	for command, file := range elsewhere {
		has[command] = true
		if file != "" {
			said(command, strings.TrimPrefix(file, "../"))
		}
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "sublet ")
		if prints := c.Flags().Lookup("output") != nil; prints != has[name] {
			t.Errorf("sublet %s: has -o: %v, has a schema: %v", name, prints, has[name])
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk((&app{}).root())
}

// compiled is a schema ready to judge.
func compiled(t *testing.T, name string, text []byte) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, value); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantForm holds JSON against the schema of an output: nothing is missing, and
// nothing is there that the schema does not say.
func wantForm(t *testing.T, name string, text []byte) {
	t.Helper()
	i := slices.IndexFunc(outputs, func(o output) bool { return o.name == name })
	if i < 0 {
		t.Fatalf("no output %q", name)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v in %s", name, err, text)
	}
	for _, open := range []bool{true, false} {
		if err := compiled(t, name+".schema.json", schemaOf(t, outputs[i], open)).Validate(value); err != nil {
			t.Errorf("%s (open: %v): %v in\n%.2000s", name, open, err, text)
		}
	}
}

// What types write is what their schemas say, whether they hold nothing or all.
func TestSchemasAcceptWhatIsWritten(t *testing.T) {
	for _, o := range outputs {
		for _, form := range o.forms {
			for _, full := range []bool{false, true} {
				v := reflect.New(reflect.TypeOf(form)).Elem()
				if full {
					fill(v, 0)
				} else if v.Kind() == reflect.Slice {
					v.Set(reflect.MakeSlice(v.Type(), 1, 1))
				}
				text, err := json.Marshal(v.Interface())
				if err != nil {
					t.Errorf("%s: %v", v.Type(), err)
					continue
				}
				wantForm(t, o.name, text)
			}
		}
	}
}

// filledTo is how far types that hold themselves are filled.
const filledTo = 12

// fill puts something into every field that is written.
func fill(v reflect.Value, depth int) {
	if depth > filledTo {
		return
	}
	switch known := v.Addr().Interface().(type) {
	case *time.Time:
		*known = time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
		return
	case *netip.Addr:
		*known = netip.MustParseAddr("192.0.2.1")
		return
	case *netip.Prefix:
		*known = netip.MustParsePrefix("192.0.2.0/24")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

// What commands print that need no server, and errors, is what the schemas say.
func TestOutputsWithoutServer(t *testing.T) {
	for _, c := range []struct{ form, line string }{
		{"version", "version"},
		{"doctor", "doctor"},
		{"paths", "paths"},
		{"up", "up --dry-run --substrate fat-tree:4 ../../examples/hello.yaml ../../examples/star.yaml"},
		{"offers", "offers ../../examples/hello.yaml --substrate fat-tree:4"},
		{"bench-multipath", "bench multipath --pattern stride:1 --method tree --flows same --runs 1"},
	} {
		_, out, errs := sublet(t, "", append(strings.Fields(c.line), "-o", "json")...)
		if out == "" {
			t.Errorf("sublet %s prints nothing: %s", c.line, errs)
			continue
		}
		wantForm(t, c.form, []byte(out))
	}
	for _, line := range []string{"leases", "leases a b", "leases --nonsense", "up /nonexistent", "up --dry-run"} {
		_, out, errs := sublet(t, "", append(strings.Fields(line), "-o", "json")...)
		if out != "" {
			t.Errorf("sublet %s prints %q", line, out)
		}
		wantForm(t, "failure", []byte(errs))
	}
}
