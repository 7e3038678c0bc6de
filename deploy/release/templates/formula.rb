class Quaymaster < Formula
  desc "Decides which container images may run, by signatures and attestations"
  homepage "https://github.com/quaymaster/quaymaster"
  version "{{.Number}}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "{{.URL "darwin_arm64"}}"
      sha256 "{{.Sum "darwin_arm64"}}"
    end
    on_intel do
      url "{{.URL "darwin_amd64"}}"
      sha256 "{{.Sum "darwin_amd64"}}"
    end
  end

  on_linux do
    on_arm do
      url "{{.URL "linux_arm64"}}"
      sha256 "{{.Sum "linux_arm64"}}"
    end
    on_intel do
      url "{{.URL "linux_amd64"}}"
      sha256 "{{.Sum "linux_amd64"}}"
    end
  end

  def install
    bin.install "quaymaster"
    generate_completions_from_executable(bin/"quaymaster", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/quaymaster version")
  end
end
