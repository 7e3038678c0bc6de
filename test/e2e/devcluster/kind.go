package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quaymaster/quaymaster/test/peers"
)

// The image that the cluster receives.
const imageName, imageTag = "quaymaster", "dev"

// minikubeContext is the context that minikube writes; kind writes kind-NAME.
const minikubeContext, kindPrefix = "minikube", "kind-"

// installed builds the image, loads it into a cluster, and installs the charts there.
func installed(ctx context.Context, s settings, to *steps) error {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return err
	}
	target, err := chosen(config.CurrentContext, s.context)
	if err != nil {
		return err
	}
	checkout, err := peers.Checkout()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "quaymaster-dev-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	to.next("Build the image (minutes, the first time)")
	build := exec.CommandContext(ctx, "make", "images")
	build.Dir, build.Stdout, build.Stderr = checkout, to.out, to.out
	if err := build.Run(); err != nil {
		return fmt.Errorf("make images: %w", err)
	}
	archive := filepath.Join(folder, "quaymaster.tar")
	if err := writeArchive(filepath.Join(checkout, "dist", "images", "quaymaster"), archive, runtime.GOARCH); err != nil {
		return err
	}
	to.next("Load it into the cluster of the context %s", target)
	for _, command := range append([][]string{load(target, archive)}, install(checkout, target)...) {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		to.show(strings.Join(command, " "), string(out))
		if err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
	}
	to.next("The gateway runs. docs/start.md has a first policy and a denial")
	return nil
}

// chosen returns the context to install into: the one that is named, or the current one if it is of kind
// or minikube. Others may be a cluster that people use.
func chosen(current, named string) (string, error) {
	switch {
	case named != "":
		return named, nil
	case current == minikubeContext || strings.HasPrefix(current, kindPrefix):
		return current, nil
	case current == "":
		return "", errors.New("the kubeconfig has no current context: create a cluster (kind create cluster), or give CONTEXT=NAME")
	}
	return "", fmt.Errorf("the current context %q is not one of kind or minikube: give CONTEXT=%s if you mean it", current, current)
}

// writeArchive writes the image of an OCI layout for one architecture as an archive of docker's.
func writeArchive(from, to, architecture string) error {
	index, err := layout.ImageIndexFromPath(from)
	if err != nil {
		return fmt.Errorf("read the image: %w", err)
	}
	image, err := platform(index, architecture)
	if err != nil {
		return fmt.Errorf("read the image: %w", err)
	}
	tag, err := name.NewTag(imageName + ":" + imageTag)
	if err != nil {
		return fmt.Errorf("name the image: %w", err)
	}
	if err := tarball.WriteToFile(to, tag, image); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// platform returns the image of linux and an architecture, also one in an index below.
func platform(index v1.ImageIndex, architecture string) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		if m.MediaType.IsIndex() {
			below, err := index.ImageIndex(m.Digest)
			if err != nil {
				return nil, err
			}
			if image, err := platform(below, architecture); err == nil {
				return image, nil
			}
			continue
		}
		if m.Platform != nil && m.Platform.OS == "linux" && m.Platform.Architecture == architecture {
			return index.Image(m.Digest)
		}
	}
	return nil, fmt.Errorf("it has no image for linux/%s", architecture)
}

// load returns the command that loads an archive into the cluster of a context.
func load(target, archive string) []string {
	if name, is := strings.CutPrefix(target, kindPrefix); is {
		return []string{"kind", "load", "image-archive", archive, "--name", name}
	}
	return []string{"minikube", "image", "load", archive, "--profile", target}
}

// install returns the commands that install the charts into the cluster of a context.
func install(checkout, target string) [][]string {
	chart := func(name string) string { return filepath.Join(checkout, "deploy", "helm", name) }
	common := []string{"--namespace", "quaymaster", "--create-namespace", "--kube-context", target}
	return [][]string{
		append([]string{"helm", "upgrade", "--install", "quaymaster-crds", chart("quaymaster-crds")}, common...),
		append(append([]string{"helm", "upgrade", "--install", "quaymaster", chart("quaymaster")}, common...), values()...),
		{"kubectl", "--context", target, "--namespace", "quaymaster", "rollout", "status", "deployment/quaymaster", "--timeout", "3m"},
	}
}

// values are those of the chart for a cluster of one node with a loaded image.
func values() []string {
	return []string{"--set", "image.repository=" + imageName, "--set", "image.tag=" + imageTag, "--set", "image.pullPolicy=Never", "--set", "replicas=1"}
}
