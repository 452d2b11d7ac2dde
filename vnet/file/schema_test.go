package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	generator "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

var update = flag.Bool("update", false, "write the schemas of docs/schema")

const schemaFolder = "../../docs/schema/"

const (
	ratePattern = `^[0-9.]+ ?[kKmMgGtT]?([bB][iI][tT](/[sS])?|[bB][pP][sS])$`
	sizePattern = `^[0-9.]+ ?([kKmMgGtT][iI]?)?[bB]$`
	spanPattern = `^(?:[0-9.]+d)?(?:[0-9.]+(?:ns|us|µs|ms|s|m|h))*$`
)

// patterns are the schema's word for quantities and names.
var patterns = map[reflect.Type]*generator.Schema{
	reflect.TypeFor[name](): {Type: "string", Pattern: vnet.NamePattern},
	reflect.TypeFor[rate](): {Type: "string", Pattern: ratePattern},
	reflect.TypeFor[size](): {Type: "string", Pattern: sizePattern},
	reflect.TypeFor[axis](): {Type: "string", Enum: axes()},
	reflect.TypeFor[functionRun](): {OneOf: []*generator.Schema{
		command("The program and its arguments; no shell."),
		{Type: "array", Items: wholeProgram(), MinItems: new(uint64(1))},
	}},
	reflect.TypeFor[probe]():         {OneOf: []*generator.Schema{{Type: "boolean", Enum: []any{true}}, {Ref: "#/$defs/packets"}}},
	reflect.TypeFor[functionCPU]():   {OneOf: []*generator.Schema{{Type: "number", Minimum: "0"}, {Type: "string", Enum: []any{autoCPU}}}},
	reflect.TypeFor[coreSeconds]():   {Type: "number"},
	reflect.TypeFor[word]():          {Type: "integer", Minimum: "0", Maximum: "4294967295"},
	reflect.TypeFor[stations]():      {Type: "string", Pattern: `^[0-9.]+(/[0-9]+)?$`},
	reflect.TypeFor[cpu]():           {Type: "number", Minimum: "0"},
	reflect.TypeFor[span]():          {Type: "string", Pattern: spanPattern, MinLength: new(uint64(1))},
	reflect.TypeFor[instant]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[anyAddress]():    {Type: "string"},
	reflect.TypeFor[address]():       {Type: "string", Format: "ipv4"},
	reflect.TypeFor[switchAddress](): {Type: "string", Pattern: `^(tcp:)?[0-9a-fA-F.:\[\]]+:[0-9]+$`},
	reflect.TypeFor[vnet.DatapathID](): {OneOf: []*generator.Schema{
		{Type: "string", Pattern: `^(0x)?[0-9a-fA-F]{1,16}$`}, {Type: "integer", Minimum: "1"},
	}},
	reflect.TypeFor[addrRange](): {Type: "string", Pattern: `^[0-9.]+(-[0-9.]+)?$`},
	reflect.TypeFor[cidr]():      prefixSchema,
	reflect.TypeFor[network]():   {Type: "string", Pattern: `^[0-9.]+/[0-9]+$`},
	reflect.TypeFor[publish]():   {Type: "string", Pattern: `^[0-9]+:[A-Za-z0-9_-]+:[0-9]+(/tcp|/udp)?$`},
	reflect.TypeFor[portRange](): {OneOf: []*generator.Schema{
		{Type: "string", Pattern: `^[0-9]+(-[0-9]+)?$`}, {Type: "integer", Minimum: "1", Maximum: "65535"},
	}},
	reflect.TypeFor[vlanRange](): {OneOf: []*generator.Schema{
		{Type: "string", Pattern: `^[0-9]+(-[0-9]+)?$`}, {Type: "integer", Minimum: "1", Maximum: "4094"},
	}},
	reflect.TypeFor[prefixes](): {OneOf: []*generator.Schema{prefixSchema, {
		Type: "array", Items: prefixSchema, MinItems: new(uint64(1)), MaxItems: new(uint64(vnet.MaxAddresses)),
	}}},
	reflect.TypeFor[countLimit](): orUnlimited(&generator.Schema{Type: "integer", Minimum: "0"}),
	reflect.TypeFor[cpuLimit]():   orUnlimited(&generator.Schema{Type: "number", Minimum: "0"}),
	reflect.TypeFor[sizeLimit]():  orUnlimited(&generator.Schema{Type: "string", Pattern: sizePattern}),
	reflect.TypeFor[rateLimit]():  orUnlimited(&generator.Schema{Type: "string", Pattern: ratePattern}),
	reflect.TypeFor[bitLimit]():   orUnlimited(&generator.Schema{Type: "string", Pattern: `^[0-9.]+ ?[kKmMgGtT]?[bB][iI][tT] ?\* ?([0-9.]*(d|h|m|s))+$`}),
	reflect.TypeFor[spanLimit]():  orUnlimited(&generator.Schema{Type: "string", Pattern: spanPattern, MinLength: new(uint64(1))}),
	reflect.TypeFor[userIDs](): {OneOf: []*generator.Schema{
		{Type: "integer", Minimum: "0"}, {Type: "string", Pattern: `^[0-9]+ ?- ?[0-9]+$`},
	}},
	reflect.TypeFor[share](): {Type: "string", Pattern: `^[0-9]+([.][0-9]+)? ?%$`},
	reflect.TypeFor[text]():  {Type: "string"},
	reflect.TypeFor[program](): {OneOf: []*generator.Schema{
		command("The program and its arguments; no shell."),
		wholeProgram(),
	}},
	reflect.TypeFor[percent](): {OneOf: []*generator.Schema{
		{Type: "string", Pattern: `^(100|[1-9][0-9]?) ?%?$`}, {Type: "integer", Minimum: "1", Maximum: "100"},
	}},
}

func command(description string) *generator.Schema {
	return &generator.Schema{Type: "array", Items: &generator.Schema{Type: "string"}, MinItems: new(uint64(1)), Description: description}
}

// wholeProgram is one that is written as a mapping.
func wholeProgram() *generator.Schema {
	fields := generator.NewProperties()
	fields.Set("cmd", command("The program and its arguments; no shell."))
	fields.Set("entrypoint", &generator.Schema{Type: "boolean", Description: "cmd are arguments of the entry point of the node's image; without cmd those that the image states."})
	fields.Set("ready", &generator.Schema{
		Description: "When others can use it: a TCP port on which something in the node listens, a command that ends with exit code 0, or part of a line of its output. Default: as soon as it is started.",
		OneOf: []*generator.Schema{
			{Type: "integer", Minimum: "1", Maximum: "65535"}, command("Ends with exit code 0."), {Type: "string", MinLength: new(uint64(1))},
		},
	})
	fields.Set("restart", &generator.Schema{Type: "string", Enum: restarts(), Default: string(vnet.RestartNo), Description: "Whether it is started again when it ends by itself, later each time."})
	fields.Set("user", &generator.Schema{Type: "string", Pattern: "^[A-Za-z0-9_]", Description: "User of the node who runs it, as in user. Default: the node's."})
	return &generator.Schema{Type: "object", AnyOf: []*generator.Schema{{Required: []string{"cmd"}}, {Required: []string{"entrypoint"}}}, AdditionalProperties: generator.FalseSchema, Properties: fields}
}

func restarts() (all []any) {
	for _, r := range vnet.Restarts {
		all = append(all, string(r))
	}
	return all
}

var prefixSchema = &generator.Schema{Type: "string", Pattern: `^[0-9a-fA-F.:]+/[0-9]+$`}

// JSONSchemaExtend says that a word alone is the name of the file.
func (frr) JSONSchemaExtend(s *generator.Schema) {
	whole := *s
	*s = generator.Schema{OneOf: []*generator.Schema{{Type: "string", MinLength: new(uint64(1))}, &whole}}
}

// JSONSchemaExtend says that a number alone is how many.
func (linkPaths) JSONSchemaExtend(s *generator.Schema) {
	whole := *s
	*s = generator.Schema{OneOf: []*generator.Schema{{Type: "integer", Minimum: "1", Maximum: json.Number(strconv.Itoa(vnet.MaxPaths))}, &whole}}
}

// JSONSchemaExtend says that a name stands for a switch of which nothing else is
// known.
func (fabricSwitch) JSONSchemaExtend(s *generator.Schema) {
	whole := *s
	whole.Required = append(whole.Required, "openflow", "ports", "entries")
	whole.OneOf = []*generator.Schema{{Required: []string{"meters"}}, {Required: []string{"queues"}}}
	*s = generator.Schema{OneOf: []*generator.Schema{{Type: "string", Pattern: vnet.NamePattern}, &whole}}
}

// JSONSchemaExtend says that either side may connect.
func (openFlow) JSONSchemaExtend(s *generator.Schema) {
	s.OneOf = []*generator.Schema{{Required: []string{"connect"}}, {Required: []string{"listen"}}}
}

// JSONSchemaExtend says that one way out needs no list.
func (nats) JSONSchemaExtend(s *generator.Schema) {
	whole := *s
	whole.MaxItems = new(uint64(vnet.MaxNAT))
	*s = generator.Schema{OneOf: []*generator.Schema{&whole, whole.Items}}
}

// JSONSchemaExtend says that a name stands for an end without addresses.
func (linkEnd) JSONSchemaExtend(s *generator.Schema) {
	whole := *s
	whole.OneOf = []*generator.Schema{{Required: []string{"node"}}, {Required: []string{"access"}}}
	whole.DependentRequired = map[string][]string{"vlan": {"access"}}
	*s = generator.Schema{OneOf: []*generator.Schema{{Type: "string", Pattern: vnet.NamePattern}, &whole}}
}

// orUnlimited is a limit that can be lifted.
func orUnlimited(s *generator.Schema) *generator.Schema {
	return &generator.Schema{OneOf: []*generator.Schema{s, {Const: "unlimited"}}}
}

func axes() []any {
	var all []any
	for _, a := range vnet.Axes {
		all = append(all, string(a))
	}
	return all
}

// JSONSchemaExtend says that rate stands alone. Links and demands inherit it.
func (bandwidth) JSONSchemaExtend(s *generator.Schema) {
	s.Not = &generator.Schema{Required: []string{"rate"}, AnyOf: []*generator.Schema{{Required: []string{"min"}}, {Required: []string{"max"}}}}
}

// JSONSchemaExtend says that end needs a start and excludes for and before.
func (window) JSONSchemaExtend(s *generator.Schema) {
	s.Not = &generator.Schema{Required: []string{"end"}, AnyOf: []*generator.Schema{{Required: []string{"for"}}, {Required: []string{"before"}}}}
	s.DependentRequired = map[string][]string{"end": {"start"}}
}

func generate(t *testing.T, title string, form any) []byte {
	t.Helper()
	r := generator.Reflector{
		FieldNameTag: "yaml", Anonymous: true, ExpandedStruct: true,
		Mapper: func(t reflect.Type) *generator.Schema {
			if s, ok := patterns[t]; ok {
				c := *s // the reflector writes descriptions into it
				return &c
			}
			return nil
		},
	}
	s := r.Reflect(form)
	s.Title = title
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// The published schemas are those of the form structs.
func TestSchemas(t *testing.T) {
	for file, text := range map[string][]byte{
		"request.schema.json":   generate(t, "Sublet virtual network request", request{}),
		"substrate.schema.json": generate(t, "Sublet substrate", substrate{}),
		"policy.schema.json":    generate(t, "Sublet policy", policy{}),
	} {
		t.Run(file, func(t *testing.T) {
			if *update {
				if err := os.WriteFile(schemaFolder+file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			have, err := os.ReadFile(schemaFolder + file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(have, text) {
				t.Errorf("%s is not what the form structs say: run go generate ./vnet/file", file)
			}
		})
	}
}

func compile(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	s, err := compiler.Compile(schemaFolder + file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// schemaOf chooses the schema of a file by its name.
func schemaOf(path string) string {
	if strings.Contains(path, "bad-request") {
		return "request.schema.json"
	}
	for _, kind := range []string{"substrate", "policy"} {
		if strings.Contains(path, kind) {
			return kind + ".schema.json"
		}
	}
	return "request.schema.json"
}

// plain turns YAML into what a JSON parser would give; editors do the same.
func plain(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Kind {
	case yaml.DocumentNode:
		return plain(t, n.Content[0])
	case yaml.MappingNode:
		m := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(t, n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, plain(t, c))
		}
		return list
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return json.Number(n.Value)
	case "!!bool":
		b, _ := strconv.ParseBool(n.Value)
		return b
	case "!!null":
		return nil
	}
	return n.Value
}

func validate(t *testing.T, path string, text []byte) error {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		t.Fatal(err)
	}
	return compile(t, schemaOf(path)).Validate(plain(t, &n))
}

func examples(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"../../examples/*.yaml", "../../examples/*/*.yaml"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range more {
			if !strings.Contains(path, "/vxswitch/") && !strings.Contains(path, "/hosting/") && !strings.HasSuffix(path, "/vxrouters.yaml") { // see vxswitch/scenario, datapath/vxswitch/live, cmd/sublet
				paths = append(paths, path)
			}
		}
	}
	if len(paths) < 10 {
		t.Fatalf("found only %d examples", len(paths))
	}
	return paths
}

// Every example, and what is written of it, satisfies the schema it names.
func TestSchemaAcceptsExamples(t *testing.T) {
	for _, path := range examples(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		named, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		if !ok || filepath.Clean(filepath.Join(filepath.Dir(path), named)) != filepath.Clean(schemaFolder+schemaOf(path)) {
			t.Errorf("%s begins %q, which does not name its schema", path, first)
		}
		if err := validate(t, path, text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Every bad file states in its first lines where the schema finds the fault
// ("-": only the reader does) and the errors of the reader, a line for each.
func TestBadFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/bad-*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 20 {
		t.Fatalf("found only %d bad files", len(paths))
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			first, rest, _ := strings.Cut(string(text), "\n")
			pointer, want := strings.TrimPrefix(first, "# pointer: "), ""
			for line := range strings.Lines(rest) {
				if says, found := strings.CutPrefix(line, "# error: "); found {
					want += "f:" + says
				}
			}
			if pointer != "-" {
				wantPointer(t, validate(t, path, text), pointer)
			}
			switch schemaOf(path) {
			case "substrate.schema.json":
				_, err = ParseSubstrate("f", text)
			case "policy.schema.json":
				_, err = ParsePolicy("f", text)
			default:
				_, err = ParseRequest("f", text)
			}
			if err == nil || err.Error()+"\n" != want {
				t.Errorf("reader says %v, want %s", err, want)
			}
		})
	}
}

// wantPointer looks for the pointer among the leaves of a validation error.
func wantPointer(t *testing.T, err error, pointer string) {
	t.Helper()
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		t.Errorf("schema says %v, want a fault at %q", err, pointer)
		return
	}
	var found []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			found = append(found, strings.TrimSuffix("/"+strings.Join(e.InstanceLocation, "/"), "/"))
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(invalid)
	for _, f := range found {
		if f == pointer {
			return
		}
	}
	t.Errorf("schema finds faults at %q, want %q", found, pointer)
}
