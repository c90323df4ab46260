// Tries the health checks of examples/gitops with the engines that run them: the Lua interpreter of Argo CD, and Flux's own evaluator.
//
//	gitops EXAMPLES CASES CRDS
//
// CASES has sample objects, and what each tool is to make of them. Every kind of the folder CRDS must have its check in Flux's example.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const apiVersion = "kflare.dev/v1alpha1"

// sample is an object, and the words of both tools for it.
type sample struct {
	Name   string         `json:"name"`
	Object map[string]any `json:"object"`
	Argo   string         `json:"argo"`
	Flux   string         `json:"flux"`
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: gitops EXAMPLES CASES CRDS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
		os.Exit(1)
	}
}

func run(examples, cases, crds string) error {
	var samples []sample
	if err := read(cases, &samples); err != nil {
		return err
	}
	script, err := argoScript(filepath.Join(examples, "argocd", "health.yaml"))
	if err != nil {
		return err
	}
	checks, err := fluxChecks(filepath.Join(examples, "flux", "resources.yaml"))
	if err != nil {
		return err
	}
	kinds, err := kindsOf(crds)
	if err != nil {
		return err
	}
	var wrong []error
	for _, kind := range kinds {
		if _, found := checks[kind]; !found {
			wrong = append(wrong, fmt.Errorf("Flux's example has no check for %s", kind))
		}
	}
	if len(checks) > len(kinds) {
		wrong = append(wrong, fmt.Errorf("Flux's example has checks for %d kinds, and there are %d", len(checks), len(kinds)))
	}
	for _, it := range samples {
		found, err := argo(script, it.Object)
		if err != nil {
			return fmt.Errorf("%s: Argo CD: %w", it.Name, err)
		}
		if found != it.Argo {
			wrong = append(wrong, fmt.Errorf("%s: Argo CD says %s and should say %s", it.Name, found, it.Argo))
		}
		for _, kind := range kinds {
			found, err := flux(checks[kind], kind, it.Object)
			if err != nil {
				return fmt.Errorf("%s: Flux, as a %s: %w", it.Name, kind, err)
			}
			if found != it.Flux {
				wrong = append(wrong, fmt.Errorf("%s: Flux says %s of a %s and should say %s", it.Name, found, kind, it.Flux))
			}
		}
	}
	if len(samples) == 0 || len(kinds) == 0 {
		wrong = append(wrong, errors.New("nothing was tried"))
	}
	if len(wrong) == 0 {
		fmt.Printf("gitops %d samples, %d kinds\n", len(samples), len(kinds))
	}
	return errors.Join(wrong...)
}

func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// argoScript is the script for kflare's kinds in the ConfigMap that configures Argo CD.
func argoScript(path string) (string, error) {
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	if err := read(path, &configMap); err != nil {
		return "", err
	}
	var customizations map[string]map[string]string
	if err := yaml.Unmarshal([]byte(configMap.Data["resource.customizations"]), &customizations); err != nil {
		return "", err
	}
	script := customizations["kflare.dev/*"]["health.lua"]
	if script == "" {
		return "", fmt.Errorf("%s has no health.lua for kflare.dev/*", path)
	}
	return script, nil
}

// fluxChecks are the checks of the Kustomization among the documents of a file, by kind.
func fluxChecks(path string) (map[string]*cel.StatusEvaluator, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	checks := map[string]*cel.StatusEvaluator{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var kustomization struct {
			Kind string `json:"kind"`
			Spec struct {
				HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(document), &kustomization); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, check := range kustomization.Spec.HealthCheckExprs {
			if check.APIVersion != apiVersion {
				return nil, fmt.Errorf("%s: a check for %s", path, check.APIVersion)
			}
			evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", path, check.Kind, err)
			}
			checks[check.Kind] = evaluator
		}
	}
	return checks, nil
}

// kindsOf are the kinds of the CRDs in a folder.
func kindsOf(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var kinds []string
	for _, file := range files {
		var crd struct {
			Spec struct {
				Names struct {
					Kind string `json:"kind"`
				} `json:"names"`
			} `json:"spec"`
		}
		if err := read(file, &crd); err != nil {
			return nil, err
		}
		kinds = append(kinds, crd.Spec.Names.Kind)
	}
	return kinds, nil
}

// argo runs the script as Argo CD does: the object is the global `obj`, and the result a table with a status.
func argo(script string, object map[string]any) (string, error) {
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(script); err != nil {
		return "", err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", errors.New("the script returns no table")
	}
	if message := result.RawGetString("message"); message.Type() != lua.LTString || message.String() == "" {
		return "", fmt.Errorf("the message is %v", message)
	}
	return result.RawGetString("status").String(), nil
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case []any:
		table := state.NewTable()
		for _, element := range value {
			table.Append(luaValue(state, element))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, element := range value {
			table.RawSetString(key, luaValue(state, element))
		}
		return table
	default:
		return lua.LNil
	}
}

// flux evaluates the expressions as Flux does. What it cannot evaluate yet it asks again: "Unknown".
func flux(check *cel.StatusEvaluator, kind string, object map[string]any) (string, error) {
	if check == nil {
		return "", errors.New("there is no check")
	}
	// As it comes from an API server: whole numbers are whole.
	text, err := yaml.Marshal(object)
	if err != nil {
		return "", err
	}
	json, err := yaml.YAMLToJSON(text)
	if err != nil {
		return "", err
	}
	resource := &unstructured.Unstructured{Object: map[string]any{}}
	withType := strings.Replace(string(json), "{", fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, apiVersion, kind), 1)
	if err := resource.UnmarshalJSON([]byte(withType)); err != nil {
		return "", err
	}
	result, err := check.Evaluate(context.Background(), resource)
	if err != nil {
		return "Unknown", nil
	}
	return string(result.Status), nil
}
