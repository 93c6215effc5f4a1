// What the server and this extension say to each other beside LSP (docs/lsp.md).

export interface Problem {
  kind: string;
  message: string;
  remedy: string;
}

export interface DocumentStatus {
  uri: string;
  busy: boolean;
  health: 'ok' | 'warning' | 'error';
  message: string;
  stage?: string;
  kernels: { found: number; reached: number } | null;
  problems: Problem[];
  /** The GPU that gives verdicts, and how many findings or kernels have which. */
  gpu?: string | null;
  verdicts?: Record<string, number>;
}

export const STATUS = 'pallas/status';
export const TRUST_CHANGED = 'pallas/didChangeTrust';
export const VIEWS = 'pallas/views';

export type ViewKind = 'jaxpr' | 'mlir' | 'ptx';

export interface View {
  title: string;
  text: string;
}

/** `reason` says why there is nothing to see. */
export interface ViewsAnswer {
  kernel: string;
  line: number;
  views: View[];
  reason: string;
}
