# The command line with torch for the CPU. From this folder:
#   docker build -t zsntta .
#   docker run --rm -v "$PWD:/work" zsntta demo
FROM python:3.13-slim

COPY pyproject.toml README.md LICENSE /build/
RUN pip install --no-cache-dir torch torchvision --index-url https://download.pytorch.org/whl/cpu
COPY zsntta_cli /build/zsntta_cli
RUN pip install --no-cache-dir /build

# Features, records and data lie in the mounted folder; downloaded weights in its .cache.
RUN useradd --create-home --uid 1000 user
USER user
ENV HF_HOME=/work/.cache/huggingface
WORKDIR /work
ENTRYPOINT ["zsntta"]
CMD ["--help"]
